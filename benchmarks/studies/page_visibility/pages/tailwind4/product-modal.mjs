// The product page as it is while its size guide is open.
export { default } from "./product.mjs";
export const acts = [["[data-tab='#tab-care']", "click"], ["[name=gift]", "click"], ["[data-show='#size-guide']", "click"]];
