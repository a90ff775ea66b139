// The listing on a phone, after a quick add: cart drawer, menu and filters open.
export { default } from "./listing.mjs";
export const phone = true;
export const acts = [["[data-toggle='#menu']", "click"], ["#menu summary", "click"], ["#menu [data-toggle]", "click"], ["[data-toggle='#filters']", "click"], ["#filters [data-toggle]", "click"], ["[data-add]", "click"], ["#cart summary", "click"]];
