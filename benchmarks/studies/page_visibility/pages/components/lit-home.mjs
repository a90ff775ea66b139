import { html, products } from "../../shop.mjs";
import { lit } from "./layout.mjs";

export default lit("Grainworks", html`
  <shop-header><a slot="logo" href="/">Grainworks</a><a slot="account" href="/account">Account</a><a slot="missing" href="/lost">Lost</a><button class="wide">Cart</button></shop-header>
  <main>${products.map((each, i) => html`<product-tile product="${each.id}" ${i % 3 === 2 ? "compact" : ""} class="${i === 4 ? "sold-out" : ""}"><a href="/makers/${i}" class="wide">The maker</a></product-tile>`)}</main>
  <shop-disclosure title="Delivery" open><a href="/delivery">Table of prices</a></shop-disclosure>
  <shop-disclosure title="Returns"><a href="/returns">Send it back</a><button class="always">Ask us</button></shop-disclosure>
  <div class="compact"><shop-disclosure title="Oiling" open class="plain"><a href="/oil">Oil</a></shop-disclosure></div>
  <shop-header hidden><a slot="logo" href="/old">Old shop</a></shop-header>`, `
  product-tile:nth-of-type(n + 9) { display: none; }
  shop-disclosure::part(button) { display: inline-block; }
  @media (max-width: 500px) { product-tile::part(missing), main > :nth-child(even) { visibility: hidden; } main > :nth-child(even) a { visibility: visible; } }`);
