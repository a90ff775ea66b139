// The home page on a phone with the off-canvas menu open and a department unfolded in it.
export { default } from "./home.mjs";
export const phone = true;
export const acts = [[".navbar-toggler", "click"], ["#nav .dropdown-toggle", "click"]];
