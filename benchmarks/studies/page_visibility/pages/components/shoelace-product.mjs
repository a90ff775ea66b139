import { html, price, products } from "../../shop.mjs";
import { shoelace } from "./layout.mjs";

const set = products[3];
export const acts = [["sl-tab >> nth=1", "click"], ["sl-details >> nth=1", "click"], ["#guide", "click"]];

export default shoelace(set.title, html`
  <h1>${set.title}</h1><p>${price(set.cents)}</p>
  <sl-radio-group label="Color" value="Glass">${set.colors.map((color) => `<sl-radio value="${color}">${color}</sl-radio>`)}</sl-radio-group>
  <sl-select label="Grind" value="filter"><sl-option value="filter">Filter</sl-option><sl-option value="whole">Whole</sl-option></sl-select>
  <sl-checkbox checked>Add filters</sl-checkbox><sl-switch>Subscribe</sl-switch><sl-textarea label="Note"></sl-textarea>
  <sl-input type="password" password-toggle label="Gift code"></sl-input>
  <sl-button-group><sl-button>−</sl-button><sl-button>1</sl-button><sl-button>+</sl-button></sl-button-group>
  <sl-button variant="primary" class="wide">Add to cart</sl-button><sl-button class="narrow">Add</sl-button><sl-button id="guide">Brewing guide</sl-button>
  <sl-tag removable>Two cups</sl-tag>
  <sl-tab-group>${["Details", "Reviews", "Origin"].map((word) => `<sl-tab slot="nav" panel="${word}">${word}</sl-tab>`)}${["Details", "Reviews", "Origin"].map((word) => `<sl-tab-panel name="${word}"><a href="/${word}">All ${word.toLowerCase()}</a><button>Share ${word.toLowerCase()}</button></sl-tab-panel>`)}</sl-tab-group>
  ${["How hot?", "How fine?"].map((word, i) => `<sl-details summary="${word}" ${i ? "" : "open"}><a href="/answers/${i}">The whole answer</a></sl-details>`)}
  <sl-dialog label="Brewing guide"><a href="/guide.pdf">As PDF</a><sl-input label="E-mail"></sl-input><sl-button slot="footer">Send it</sl-button></sl-dialog>
  <sl-dialog label="Closed"><sl-button>In the closed dialog</sl-button></sl-dialog>
  <script>guide.addEventListener("click", () => document.querySelector("sl-dialog").show());</script>`);
