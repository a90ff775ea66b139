import { Alert, Box, Button, Card as MuiCard, CardActionArea, CardActions, CardContent, Grid, IconButton, Link, MobileStepper, Snackbar, Tab, Tabs, useMediaQuery } from "@mui/material";
import { departments, products } from "../../shop.mjs";
import { Card, Shop } from "./layout.jsx";

export default function Home() {
  const wide = useMediaQuery("(min-width: 900px)");
  return (
    <Shop title="Paper and more">
      <Alert severity="info" onClose={() => {}} action={undefined}>Closed on Monday. <Link href="/hours">Hours</Link></Alert>
      <Tabs value={0} variant="scrollable" scrollButtons="auto" allowScrollButtonsMobile>{departments.map(({ title }) => <Tab key={title} label={title} />)}</Tabs>
      <Box sx={{ display: { xs: "none", lg: "grid" }, gridTemplateColumns: "1fr 1fr" }}>
        {["Pens for left hands", "Diaries"].map((word) => <MuiCard key={word}><CardActionArea href={`/t/${word.length}`}><CardContent>{word}</CardContent></CardActionArea><CardActions><Button>More on {word}</Button></CardActions></MuiCard>)}
      </Box>
      {wide ? <Button href="/atlas">Atlas of paper</Button> : <Button href="/atlas">Atlas</Button>}
      <MobileStepper variant="dots" steps={3} position="static" activeStep={0} nextButton={<Button size="small">Next</Button>} backButton={<Button size="small" disabled>Back</Button>} sx={{ display: { sm: "none" } }} />
      <Grid container spacing={2}>
        {products.map((each, i) => <Grid key={each.id} size={{ xs: 6, md: 4, lg: 3 }} sx={i > 7 ? { display: { xs: "none", md: "block" } } : i === 7 ? { "&&": { display: "block" }, display: "none" } : undefined}><Card each={each} /></Grid>)}
      </Grid>
      <Snackbar open message="Cookies?" action={<><Button size="small">Accept</Button><IconButton size="small" aria-label="Refuse">×</IconButton></>} />
    </Shop>
  );
}
