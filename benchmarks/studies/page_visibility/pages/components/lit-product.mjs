import { html, products } from "../../shop.mjs";
import { lit } from "./layout.mjs";

export const phone = true;
export const acts = [["#burger", "click"], ["shop-tabs [role=tab] >> nth=1", "click"], ["shop-disclosure button >> nth=0", "click"]];

export default lit("Chopping board", html`
  <shop-header><button class="wide">Cart</button></shop-header>
  <h1>${products[2].title}</h1>
  <quantity-field></quantity-field><quantity-field class="locked"></quantity-field>
  <button>Add to cart</button>
  <shop-tabs>${["Details", "Care", "Reviews", "Makers"].map((word) => `<section slot="panel" title="${word}"><a href="/${word}">More ${word.toLowerCase()}</a><button>Print ${word.toLowerCase()}</button></section>`)}<a href="/unslotted">Without a slot</a></shop-tabs>
  <shop-disclosure title="Which wood?"><a href="/oak">Oak</a><shop-disclosure title="And the glue?"><a href="/glue">Glue</a></shop-disclosure></shop-disclosure>
  <shop-disclosure title="Sizes" style="--body: none"><a href="/sizes">Sizes</a></shop-disclosure>
  <product-tile product="enamel-kettle"></product-tile>`, `
  .locked .less, quantity-field.locked > input + button { display: none; }
  shop-disclosure shop-disclosure::part(body) { display: block; }`);
