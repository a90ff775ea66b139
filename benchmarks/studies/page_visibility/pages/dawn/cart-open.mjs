import { html, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

export default page("Cart", html`
  <form id="cart"><table><thead><tr><th>Product</th><th class="medium-hide large-up-hide">Total</th></tr></thead>${products.slice(0, 2).map((each) => html`<tr class="cart-item"><td><a href="/products/${each.id}">${each.title}</a></td><td class="medium-hide large-up-hide"><button>Change ${each.title}</button></td><td class="small-hide"><input type="number" value="2" aria-label="Quantity of ${each.title}"></td><td><cart-remove-button><button>Remove ${each.title}</button></cart-remove-button></td></tr>`)}</table></form>
  <ul class="discounts"><li>A <a href="#a" class="discounts__clear">Clear A</a></li><li>B <a href="#b" class="discounts__clear">Clear B</a></li></ul>
  <div inert><button>Behind the drawer</button></div><ul class="grid">${products.slice(0, 5).map(card)}</ul>`, { cart: "active" });
