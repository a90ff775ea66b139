export { default } from "./home.jsx";
export const client = true;
export const acts = [["[aria-label='Save Enamel kettle with beech handle']", "hover"], ["[data-account]", "click"]];
