import { AppBar, BottomNavigation, BottomNavigationAction, Badge, Box, Button, Collapse, Container, CssBaseline, Drawer, IconButton, Link, List, ListItemButton, Menu, MenuItem, Stack, TextField, ThemeProvider, Toolbar, Tooltip, Typography, createTheme } from "@mui/material";
import { visuallyHidden } from "@mui/utils";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { departments, price, products, slug } from "../../shop.mjs";

const theme = createTheme({ cssVariables: true, colorSchemes: { dark: true }, breakpoints: { values: { xs: 0, sm: 600, md: 900, lg: 1200, xl: 1536 } } });
const Icon = ({ children }) => <svg viewBox="0 0 24 24" width="24" aria-hidden="true"><path d={children} /></svg>;
export const BURGER = "M3 6h18M3 12h18M3 18h18";
export const HEART = "M12 21 3 12a5 5 0 0 1 9-6 5 5 0 0 1 9 6z";
export { Icon, theme };

export function Card({ each }) {
  return (
    <Box sx={{ position: "relative", "&:hover .quick": { visibility: "visible" }, "@media (hover: none)": { "& .quick": { visibility: "visible" } } }}>
      <Link href={`/item/${each.id}`}>{each.title}</Link>
      <Typography>{price(each.cents)}</Typography>
      <Tooltip title="Save"><IconButton aria-label={`Save ${each.title}`}><Icon>{HEART}</Icon></IconButton></Tooltip>
      <Button className="quick" sx={{ visibility: "hidden" }}>Quick view</Button>
      <Button variant="contained" sx={{ display: { xs: "none", sm: "inline-flex", lg: "none", xl: "inline-flex" } }}>Add to cart</Button>
      <IconButton sx={(theme) => ({ [theme.breakpoints.only("xs")]: { display: "inline-flex" }, display: "none" })} aria-label={`Add ${each.title}`}>+</IconButton>
    </Box>
  );
}

export function Shop({ children, title }) {
  const [menu, setMenu] = useState(false);
  const [cart, setCart] = useState(false);
  const [anchor, setAnchor] = useState(null);
  const [unfolded, setUnfolded] = useState(null);
  const folded = (
    <List component="nav" sx={{ width: 280 }}>
      {departments.map(({ title, parts, href }) => (
        <Box key={title}>
          <ListItemButton data-unfold onClick={() => setUnfolded(unfolded === title ? null : title)}>{title}</ListItemButton>
          <Collapse in={unfolded === title}>
            {parts.map((part) => <ListItemButton component="a" key={part} href={`${href}/${slug(part)}`} sx={{ pl: 4 }}>{part}</ListItemButton>)}
          </Collapse>
        </Box>
      ))}
      <ListItemButton component="a" href="/account" sx={{ display: { sm: "none" } }}>Account</ListItemButton>
    </List>
  );
  return (
    <>
      <CssBaseline />
      <Link href="#main" sx={visuallyHidden}>Skip to content</Link>
      <AppBar position="sticky">
        <Toolbar>
          <IconButton sx={{ display: { xs: "flex", md: "none" } }} aria-label="open drawer" data-menu onClick={() => setMenu(true)}><Icon>{BURGER}</Icon></IconButton>
          <Link href="/" color="inherit">Folio</Link>
          <Box sx={{ display: { xs: "none", md: "flex" }, flexGrow: 1 }}>
            {departments.map(({ title, href }) => <Button key={title} color="inherit" href={href}>{title}</Button>)}
            <Button color="inherit" href="/sale" sx={{ display: { md: "none", lg: "inline-flex" } }}>Sale</Button>
          </Box>
          <TextField size="small" label="Search" type="search" sx={{ display: { xs: "none", sm: "inline-flex" } }} />
          <IconButton aria-label="Search" sx={{ display: { sm: "none" } }}><Icon>M10 4a6 6 0 1 0 0 12z</Icon></IconButton>
          <Button color="inherit" data-account onClick={(event) => setAnchor(event.currentTarget)} sx={{ "@media (max-width:599.95px)": { display: "none" } }}>Account</Button>
          <Menu anchorEl={anchor} open={Boolean(anchor)} onClose={() => setAnchor(null)} keepMounted>
            {["Orders", "Addresses", "Sign out"].map((word) => <MenuItem key={word} onClick={() => setAnchor(null)}>{word}</MenuItem>)}
          </Menu>
          <IconButton data-cart onClick={() => setCart(true)} aria-label="Cart"><Badge badgeContent={2}><Icon>M4 4h3l2 12h10</Icon></Badge></IconButton>
        </Toolbar>
      </AppBar>
      <Drawer open={menu} onClose={() => setMenu(false)} ModalProps={{ keepMounted: true }} sx={{ display: { xs: "block", md: "none" } }}>{folded}<Button onClick={() => setMenu(false)}>Close menu</Button></Drawer>
      <Drawer anchor="right" open={cart} onClose={() => setCart(false)}>
        <Box sx={{ width: 320, p: 2 }}>
          <Typography variant="h6">Cart</Typography>
          {products.slice(8, 10).map((each) => <Stack direction="row" key={each.id}><Link href={`/item/${each.id}`}>{each.title}</Link><TextField type="number" defaultValue={1} slotProps={{ htmlInput: { "aria-label": "Quantity" } }} /><Button>Remove</Button></Stack>)}
          <Button variant="contained" fullWidth href="/checkout">Check out</Button><Button onClick={() => setCart(false)}>Go on shopping</Button>
        </Box>
      </Drawer>
      <Container component="main" id="main"><Typography variant="h1">{title}</Typography>{children}</Container>
      <Box component="footer" sx={{ display: { xs: "block", displayPrint: "none" }, displayPrint: "none" }}>
        {["Delivery", "Returns", "Jobs"].map((word) => <Link key={word} href={`/${word.toLowerCase()}`} sx={{ "&:last-of-type": { display: { xs: "none", md: "inline" } } }}>{word}</Link>)}
        <Box sx={{ display: "none", displayPrint: "block" }}><Link href="/print">Printed footer</Link></Box>
      </Box>
      <BottomNavigation showLabels sx={{ position: "fixed", bottom: 0, width: 1, display: { md: "none" } }}>
        {["Home", "Browse", "Saved"].map((word) => <BottomNavigationAction key={word} label={word} />)}
      </BottomNavigation>
    </>
  );
}

export const themed = (Page) => <ThemeProvider theme={theme}><Page /></ThemeProvider>;
export const mount = (Page) => addEventListener("DOMContentLoaded", () => createRoot(document.getElementById("root")).render(themed(Page)));
