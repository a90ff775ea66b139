// The home page with its drawer open and a department unfolded.
import page from "./shoelace-home.mjs";
export default page.replace("</body>", `<script>document.querySelector("#open").addEventListener("click", () => document.querySelector("#menu").show())</script></body>`);
export const phone = true;
export const acts = [["#open", "click"], ["sl-drawer sl-details", "click"]];
