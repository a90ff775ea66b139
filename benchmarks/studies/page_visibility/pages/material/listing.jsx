import { Accordion, AccordionDetails, AccordionSummary, Box, Breadcrumbs, Button, Checkbox, Chip, Drawer, FormControl, FormControlLabel, Grid, InputLabel, Link, MenuItem, NativeSelect, Pagination, Rating, Select, Slider, Switch, ToggleButton, ToggleButtonGroup, styled } from "@mui/material";
import { useState } from "react";
import { brands, products } from "../../shop.mjs";
import { Card, Shop } from "./layout.jsx";

const Side = styled("aside")(({ theme }) => ({
  containerType: "inline-size",
  [theme.breakpoints.down("md")]: { display: "none" },
  "& .narrow": { display: "none" },
  "@container (max-width: 320px)": { "& .narrow": { display: "inline-flex" } },
}));

const Filters = () => (
  <>
    {Object.entries({ Brand: brands, Ruling: ["Dotted", "Lined", "Plain"], Color: ["Grey", "Red", "Blue"] }).map(([title, values], i) => (
      <Accordion key={title} defaultExpanded={i === 0} disableGutters slotProps={{ transition: { unmountOnExit: i === 2 } }}>
        <AccordionSummary>{title}</AccordionSummary>
        <AccordionDetails>{values.map((value) => <FormControlLabel key={value} control={<Checkbox />} label={value} />)}<Button>Clear {title}</Button></AccordionDetails>
      </Accordion>
    ))}
    <FormControlLabel control={<Switch defaultChecked />} label="In stock" />
    <Slider defaultValue={[20, 80]} getAriaLabel={(i) => ["Lowest price", "Highest price"][i]} />
    <Button className="narrow">All filters</Button>
  </>
);

export default function Listing() {
  const [open, setOpen] = useState(false);
  const [order, setOrder] = useState("new");
  return (
    <Shop title="Notebooks">
      <Breadcrumbs maxItems={3}>{["Home", "Paper", "Books", "Notebooks"].map((word) => <Link key={word} href={`/${word}`}>{word}</Link>)}</Breadcrumbs>
      <Box sx={{ display: "flex", gap: 2 }}>
        <Button sx={{ display: { md: "none" } }} data-filters onClick={() => setOpen(true)}>Filters</Button>
        <FormControl size="small" sx={{ minWidth: 120, display: { xs: "none", sm: "inline-flex" } }}><InputLabel id="order">Order</InputLabel><Select labelId="order" label="Order" value={order} onChange={(event) => setOrder(event.target.value)}>{["new", "cheap", "dear"].map((word) => <MenuItem key={word} value={word}>{word}</MenuItem>)}</Select></FormControl>
        <NativeSelect sx={{ display: { sm: "none" } }} inputProps={{ "aria-label": "Order" }}><option>new</option><option>cheap</option></NativeSelect>
        <ToggleButtonGroup exclusive value="grid" sx={{ display: { xs: "none", lg: "flex" } }}><ToggleButton value="grid">Grid</ToggleButton><ToggleButton value="list">List</ToggleButton></ToggleButtonGroup>
        <Rating name="least" defaultValue={4} />
        {["Folio", "A5"].map((word) => <Chip key={word} label={word} onDelete={() => {}} onClick={() => {}} />)}
      </Box>
      <Drawer open={open} onClose={() => setOpen(false)} anchor="bottom"><Filters /><Button onClick={() => setOpen(false)}>Show results</Button></Drawer>
      <Box sx={{ display: "flex" }}>
        <Side><Filters /></Side>
        <Grid container spacing={2}>{products.map((each) => <Grid key={each.id} size={{ xs: 12, sm: 6, lg: 4 }}><Card each={each} /></Grid>)}</Grid>
      </Box>
      <Pagination count={12} sx={{ "@media (max-width: 600px)": { "& li:not(:first-of-type):not(:last-of-type)": { display: "none" } } }} />
    </Shop>
  );
}
