import { Accordion, AccordionDetails, AccordionSummary, Autocomplete, Box, Button, ButtonGroup, Collapse, Dialog, DialogActions, DialogContent, DialogTitle, Fade, FormControlLabel, ImageList, ImageListItem, Link, Radio, RadioGroup, SpeedDial, SpeedDialAction, Tab, Tabs, TextField, Zoom } from "@mui/material";
import { useState } from "react";
import { countries, price, products } from "../../shop.mjs";
import { Icon, HEART, Shop } from "./layout.jsx";

const trio = products[9];
export const client = true;
export const acts = [["[role=tab] >> nth=1", "click"], ["[name=gift]", "click"], ["[data-sizes]", "click"]];

export default function Product() {
  const [tab, setTab] = useState(0);
  const [gift, setGift] = useState(false);
  const [sizes, setSizes] = useState(false);
  return (
    <Shop title={trio.title}>
      <ImageList cols={4} sx={{ display: { xs: "none", sm: "grid" } }}>{["Cover", "Spine", "Page", "Back"].map((view) => <ImageListItem key={view} component="button" aria-label={view} />)}</ImageList>
      <Box sx={{ display: { xs: "flex", sm: "none" }, overflowX: "auto" }}>{["Cover", "Spine"].map((view) => <Button key={view}>{view}</Button>)}</Box>
      <RadioGroup row defaultValue="Grey">{trio.colors.map((color) => <FormControlLabel key={color} value={color} control={<Radio name="color" />} label={color} />)}</RadioGroup>
      <Button data-sizes onClick={() => setSizes(true)}>Sizes in millimetres</Button>
      <ButtonGroup sx={{ "& > :nth-of-type(2)": { pointerEvents: "none" } }}><Button>−</Button><Button>1</Button><Button>+</Button></ButtonGroup>
      <br />
      <FormControlLabel control={<input type="checkbox" name="gift" onChange={(event) => setGift(event.target.checked)} />} label="Gift" />
      <Collapse in={gift}><TextField label="Message" multiline /></Collapse>
      <Fade in={gift}><Button>See wrapping</Button></Fade>
      <Zoom in={!gift} timeout={100}><Button>Send a card instead</Button></Zoom>
      <Autocomplete options={countries} renderInput={(props) => <TextField {...props} label="Ship to" />} />
      <Button variant="contained">Add to cart, {price(trio.cents)}</Button>
      <Tabs value={tab} onChange={(_, value) => setTab(value)}>{["Details", "Reviews", "Makers"].map((word) => <Tab key={word} label={word} />)}</Tabs>
      {["Paper weight", "Write a review", "About the bindery"].map((word, i) => <div role="tabpanel" hidden={i !== tab} key={word}><Link href={`#${i}`}>{word}</Link></div>)}
      {["Is it refillable?", "Does ink bleed?"].map((word) => <Accordion key={word}><AccordionSummary>{word}</AccordionSummary><AccordionDetails><Button>Answer “{word}”</Button></AccordionDetails></Accordion>)}
      <Dialog open={sizes} onClose={() => setSizes(false)}><DialogTitle>Sizes</DialogTitle><DialogContent><TextField label="Your desk, in mm" /></DialogContent><DialogActions><Button onClick={() => setSizes(false)}>Close sizes</Button><Button autoFocus>Fit</Button></DialogActions></Dialog>
      <Dialog open={false} keepMounted><DialogContent><Button>Zoomed picture</Button></DialogContent></Dialog>
      <SpeedDial ariaLabel="Share" icon={<Icon>{HEART}</Icon>} sx={{ position: "fixed", bottom: 80, right: 16 }}>{["Mail", "Copy"].map((word) => <SpeedDialAction key={word} icon={<Icon>{HEART}</Icon>} slotProps={{ tooltip: { title: word } }} />)}</SpeedDial>
    </Shop>
  );
}
