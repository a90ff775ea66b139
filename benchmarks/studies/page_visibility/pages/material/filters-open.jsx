export { default } from "./listing.jsx";
export const client = true;
export const phone = true;
export const acts = [["[data-filters]", "click"], [".MuiDrawer-root .MuiAccordionSummary-root >> nth=1", "click"]];
