export { default } from "./home.jsx";
export const client = true;
export const phone = true;
export const acts = [["[data-menu]", "click"], [".MuiDrawer-root [data-unfold]", "click"]];
