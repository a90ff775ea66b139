// The listing on a phone with its filters open.
export { default } from "./listing.mjs";
export const phone = true;
export const acts = [["[data-bs-target='#filters'].btn", "click"], ["[data-bs-target='#by-material']", "click"]];
