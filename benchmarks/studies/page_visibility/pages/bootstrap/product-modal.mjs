// The product page: another tab, a popover, then the modal of what was added.
export { default } from "./product.mjs";
export const acts = [["#bulb", "click"], ["[data-bs-target='#Reviews']", "click"], ["#energy", "click"], ["[data-bs-target='#added']", "click"]];
