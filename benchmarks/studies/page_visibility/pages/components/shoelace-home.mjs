import { departments, html, price, products } from "../../shop.mjs";
import { shoelace } from "./layout.mjs";

export default shoelace("Home", html`
  <header>
    <sl-icon-button class="narrow" name="list" label="Menu" id="open"></sl-icon-button>
    <a href="/">Morning Ritual</a>
    <nav class="wide">${departments.map(({ title, parts }) => html`<sl-dropdown><sl-button slot="trigger" caret>${title}</sl-button><sl-menu>${parts.map((part) => `<sl-menu-item>${part}</sl-menu-item>`)}</sl-menu></sl-dropdown>`)}</nav>
    <sl-input type="search" clearable placeholder="Search" class="wide"></sl-input>
    <sl-tooltip content="Your cart"><sl-button href="/cart">Cart <sl-badge pill>2</sl-badge></sl-button></sl-tooltip>
  </header>
  <sl-drawer label="Menu" placement="start" id="menu">${departments.map(({ title, href, parts }) => html`<sl-details summary="${title}">${parts.map((part) => `<a href="${href}">${part}</a>`)}</sl-details>`)}<sl-button slot="footer">Sign in</sl-button></sl-drawer>
  <sl-alert open closable>Roasted today. <a href="/roast">See how</a></sl-alert>
  <sl-alert closable>Saved. <a href="/saved">See all saved</a></sl-alert>
  <sl-carousel navigation pagination>${["Beans", "Brewers", "Cups"].map((word) => `<sl-carousel-item><a href="/${word}">${word} of the month</a></sl-carousel-item>`)}</sl-carousel>
  <div>${products.slice(0, 6).map((each, i) => html`<sl-card><a href="${each.href}">${each.title}</a> <sl-rating readonly value="${each.rating}" label="Rating"></sl-rating>
    <div slot="footer">${price(each.cents)} <sl-button size="small" variant="primary" ${i === 3 ? "disabled" : ""}>Add</sl-button><sl-button size="small" class="wide">Compare</sl-button><sl-icon-button class="narrow" name="heart" label="Save"></sl-icon-button></div><sl-button slot="nowhere">Never rendered</sl-button></sl-card>`)}</div>`, "sl-card:nth-child(n + 5) { display: none } @media (min-width: 60rem) { sl-card:nth-child(n + 5) { display: inline-block } }");
