// Bundled for the browser: a shop's own components, written with Lit.
import { LitElement, css, html, nothing } from "lit";
import { departments, price, products, slug } from "../../shop.mjs";

const hidden = css`
  .hidden { display: none; }
  .sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;

class ShopHeader extends LitElement {
  static properties = { open: { type: Boolean, reflect: true }, menu: { state: true } };
  static styles = [hidden, css`
    :host { display: block; --burger: none; }
    :host([hidden]) { display: none; }
    nav { display: flex; gap: 1rem; }
    .burger { display: var(--burger); }
    .panel { visibility: hidden; position: absolute; }
    .panel.shown { visibility: visible; }
    ::slotted([slot="account"]) { display: none; }
    :host([open]) ::slotted([slot="account"]) { display: block; }
    @media (max-width: 800px) {
      :host { --burger: inline-block; }
      ul { display: none; }
      :host([open]) ul { display: block; }
    }
  `];
  render() {
    return html`<nav aria-label="Main">
      <button class="burger" id="burger" @click=${() => (this.open = !this.open)}>Menu</button>
      <slot name="logo"><a href="/">Shop</a></slot>
      <ul>${departments.map(({ title, href, parts }) => html`<li>
        <button aria-expanded=${this.menu === title} @click=${() => (this.menu = this.menu === title ? null : title)}>${title}</button>
        <div class="panel ${this.menu === title ? "shown" : ""}">${parts.map((part) => html`<a href="${href}/${slug(part)}">${part}</a>`)}</div></li>`)}</ul>
      <slot name="account"></slot><slot></slot>
      <button class="sr">Skip the menu</button>
    </nav>`;
  }
}
customElements.define("shop-header", ShopHeader);

class ShopDisclosure extends LitElement {
  static properties = { open: { type: Boolean, reflect: true }, title: {} };
  static styles = css`
    :host { display: block; }
    .body { display: none; }
    :host([open]) .body { display: block; }
    :host(:not([open])) ::slotted(button.always) { display: inline-block; }
    :host-context(.compact) .more { display: none; }
    :host(.plain) button { all: unset; }
  `;
  render() {
    return html`<button part="button" aria-expanded=${Boolean(this.open)} @click=${() => (this.open = !this.open)}>${this.title}</button>
      <div class="body" part="body"><slot></slot><a class="more" href="#more">More of ${this.title}</a></div>`;
  }
}
customElements.define("shop-disclosure", ShopDisclosure);

class ShopTabs extends LitElement {
  static properties = { active: { type: Number } };
  static styles = css`
    ::slotted([slot="panel"]) { display: none; }
    ::slotted([slot="panel"].active) { display: block; }
    .arrows { display: none; }
    :host { container-type: inline-size; display: block; }
    @container (max-width: 500px) { .arrows { display: flex; } .tabs button:nth-child(n + 3) { display: none; } }
  `;
  constructor() { super(); this.active = 0; }
  updated() { this.querySelectorAll("[slot=panel]").forEach((panel, i) => panel.classList.toggle("active", i === this.active)); }
  render() {
    const titles = [...this.querySelectorAll("[slot=panel]")].map((panel) => panel.title);
    return html`<div class="tabs" role="tablist">${titles.map((title, i) => html`<button role="tab" @click=${() => (this.active = i)}>${title}</button>`)}</div>
      <div class="arrows"><button aria-label="Previous tab">‹</button><button aria-label="Next tab">›</button></div><slot name="panel"></slot>`;
  }
}
customElements.define("shop-tabs", ShopTabs);

class ProductTile extends LitElement {
  static properties = { product: {}, compact: { type: Boolean, reflect: true } };
  static styles = [hidden, css`
    :host { display: block; border: 1px solid; }
    :host([compact]) .actions { display: none; }
    .quick { visibility: hidden; } :host(:hover) .quick { visibility: visible; }
    .sold { display: none; } :host(.sold-out) { & .sold { display: inline; } & .add { display: none; } }
    @media (hover: none) { .quick { visibility: visible; } }
  `];
  render() {
    const each = products.find(({ id }) => id === this.product);
    return html`<a href="${each.href}">${each.title}</a> ${price(each.cents)}
      <div class="actions"><button class="add">Add to cart</button><button class="sold">Tell me</button><button class="quick">Quick view</button>
        ${each.sizes.length ? html`<select aria-label="Size">${each.sizes.map((size) => html`<option>${size}</option>`)}</select>` : nothing}</div><slot></slot>`;
  }
}
customElements.define("product-tile", ProductTile);

// No shadow root: the browser's own style sheets apply.
class QuantityField extends LitElement {
  createRenderRoot() { return this; }
  render() { return html`<button class="less" aria-label="Less">−</button><input value="1" aria-label="Quantity"><button aria-label="More">+</button>`; }
}
customElements.define("quantity-field", QuantityField);
