import { Box, Button, FormControl, FormControlLabel, FormHelperText, FormLabel, Link, MenuItem, Paper, Radio, RadioGroup, Step, StepButton, StepContent, StepLabel, Stepper, TextField, InputAdornment, IconButton } from "@mui/material";
import { useState } from "react";
import { countries, price, products } from "../../shop.mjs";
import { Shop } from "./layout.jsx";

export const client = true;
export const acts = [["[data-next]", "click"], ["[value=shop]", "click"], ["[data-cart]", "click"]];

export default function Checkout() {
  const [step, setStep] = useState(0);
  const [way, setWay] = useState("home");
  return (
    <Shop title="Checkout">
      <Stepper nonLinear activeStep={step} sx={{ display: { xs: "none", md: "flex" } }}>{["Address", "Delivery", "Payment"].map((word, i) => <Step key={word} completed={i < step}><StepButton onClick={() => setStep(i)}>{word}</StepButton></Step>)}</Stepper>
      <Stepper activeStep={step} orientation="vertical">
        <Step><StepLabel optional={<Link component="button" onClick={() => setStep(0)}>Change</Link>}>Address</StepLabel><StepContent slotProps={{ transition: { unmountOnExit: false } }}>
          <TextField label="Name" autoComplete="name" /><TextField label="Street" /><TextField select label="Country" defaultValue="Spain" slotProps={{ select: { native: true } }}>{countries.map((each) => <option key={each}>{each}</option>)}</TextField>
          <Button data-next variant="contained" onClick={() => setStep(1)}>On to delivery</Button></StepContent></Step>
        <Step expanded={step === 1}><StepLabel>Delivery</StepLabel><StepContent>
          <FormControl><FormLabel>How</FormLabel><RadioGroup value={way} onChange={(event) => setWay(event.target.value)}>{["home", "shop"].map((word) => <FormControlLabel key={word} value={word} control={<Radio />} label={word} />)}</RadioGroup><FormHelperText>Shops are <Link href="/shops">here</Link></FormHelperText></FormControl>
          <Box sx={{ display: way === "shop" ? "block" : "none" }}><TextField select label="Which shop" defaultValue="a">{["a", "b"].map((word) => <MenuItem key={word} value={word}>{word}</MenuItem>)}</TextField></Box>
          <Box sx={{ display: way === "home" ? "block" : "none" }}><TextField label="Note for the courier" multiline rows={3} /></Box>
          <Button onClick={() => setStep(2)}>On to payment</Button><Button onClick={() => setStep(0)}>Back</Button></StepContent></Step>
        <Step><StepLabel>Payment</StepLabel><StepContent slotProps={{ transition: { unmountOnExit: false } }}><TextField label="Card" slotProps={{ input: { endAdornment: <InputAdornment position="end"><IconButton aria-label="Scan the card">▣</IconButton></InputAdornment> } }} /><Button>Pay</Button></StepContent></Step>
      </Stepper>
      <Paper sx={(theme) => ({ [theme.breakpoints.between("sm", "lg")]: { display: "none" }, ...theme.applyStyles("dark", { display: "none" }) })}>{products.slice(8, 10).map((each) => <Box key={each.id}><Link href={`/item/${each.id}`}>{each.title}</Link> {price(each.cents)} <Button size="small">Remove {each.title}</Button></Box>)}</Paper>
    </Shop>
  );
}
