import { countries, departments, html, price, products, slug } from "../../shop.mjs";

export const card = (each, i) => html`
  <li class="grid__item"><div class="card-wrapper"><div class="card ${i === 3 ? "card--soldout" : ""}">
    <h3><a href="/products/${each.id}" id="card-${each.id}">${each.title}</a></h3><span class="visually-hidden">Vendor:</span> ${each.brand}
    <s class="${each.was ? "" : "hidden"}"><a href="/sale">${price(each.was ?? each.cents)}</a></s> ${price(each.cents)}
    <div class="quick-add no-js-hidden"><button class="quick-add__submit" aria-haspopup="dialog">Choose options</button></div>
    <a class="small-hide" href="/collections/vendors?q=${slug(each.brand)}">More by ${each.brand}</a></div></div></li>`;

export const disclosure = (title, values, classes = "") => html`
  <localization-form class="${classes}"><form><div class="disclosure"><button type="button" class="disclosure__button" aria-expanded="false"><span class="visually-hidden">${title}</span>${values[0]}</button>
    <div class="disclosure__list-wrapper"><ul role="list" class="disclosure__list list-unstyled" hidden>${values.map((value) => `<li><a href="#" data-value="${value}">${value}</a></li>`)}</ul></div></div>
    <noscript><select name="x">${values.map((value) => `<option>${value}</option>`)}</select><button>Update ${title}</button></noscript></form></localization-form>`;

export const cartDrawer = (state = "") => html`
  <cart-drawer class="drawer ${state}"><div class="drawer__inner" role="dialog" aria-modal="true" aria-label="Your cart" tabindex="-1">
    <div class="drawer__empty"><h2>Your cart is empty</h2><a href="/collections/all">Continue shopping</a><p>Have an account? <a href="/account/login">Log in</a></p></div>
    <div class="drawer__heading"><h2>Your cart</h2><button class="drawer__close" aria-label="Close">×</button></div>
    <cart-drawer-items>${products.slice(0, 3).map((each, i) => html`
      <div class="cart-item" ${i === 2 ? "data-gift" : ""}><a href="/products/${each.id}">${each.title}</a>
        <div class="cart-item__quantity"><label class="quantity__label" for="q${i}">Quantity <a href="/help/quantity">?</a></label><quantity-input><button name="minus" class="quantity__button ${i ? "" : "disabled"}"><span class="visually-hidden">Fewer ${each.title}</span>−</button><input id="q${i}" type="number" value="1"><button name="plus"><span class="visually-hidden">More ${each.title}</span>+</button></quantity-input>
        <cart-remove-button><a href="/cart/change?line=${i}" aria-label="Remove ${each.title}">🗑</a></cart-remove-button></div></div>`)}</cart-drawer-items>
    <ul class="discounts"><li>SPRING <a href="#x" class="discounts__clear">Clear SPRING</a></li></ul>
    <div class="drawer__footer"><cart-note class="cart-note"><details><summary>Order note</summary><textarea aria-label="Order note"></textarea></details></cart-note><div class="totals">${price(17100)}</div><small class="tax-note">Taxes and <a href="/policies/shipping">shipping</a> at checkout</small><button name="checkout">Check out</button></div></div></cart-drawer>`;

export const page = (title, main, { cart = "", drawer = false, root = "js" } = {}) => html`<!doctype html>
<html class="${root}" lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${title} &ndash; Harrow</title>
<noscript><link rel="stylesheet" href="noscript.css"></noscript><link href="base.css" rel="stylesheet" media="all">
<style media="print">.shopify-section { display: none }</style><style media="(max-width: 749px)">.only-wide { display: none }</style></head>
<body class="gradient"><a class="skip-to-content-link button visually-hidden" href="#MainContent">Skip to content</a>
<div class="shopify-section announcement"><p>Free returns. <a href="/policies/returns" class="only-wide">Read more</a></p><slideshow-component><button class="slider-button" aria-label="Previous announcement">‹</button><button class="slider-button slideshow__autoplay" aria-label="Pause">‖</button></slideshow-component>${disclosure("Country", countries.slice(0, 5), "small-hide medium-hide")}</div>
<div class="shopify-section section-header"><sticky-header><header class="header ${drawer ? "header--drawer" : ""}">
  <header-drawer class="drawer-toggle"><details id="drawer" class="menu-drawer-container"><summary aria-label="Menu" role="button"><span><svg class="icon-hamburger"></svg><svg class="icon-close"></svg></span></summary>
    <div class="menu-drawer" tabindex="-1"><div class="menu-drawer__inner"><nav><ul role="list" class="list-unstyled">${departments.map(({ title, href, parts }) => html`
      <li><details><summary>${title}</summary><div class="menu-drawer__submenu"><button class="menu-drawer__close-button" aria-expanded="true">${title}</button><ul>${parts.map((part) => `<li><a href="${href}/${slug(part)}">${part}</a></li>`)}</ul></div></details></li>`)}<li><a href="/gift-card">Gift card</a></li></ul></nav>
      <div><a href="/account" class="large-up-hide">Log in</a>${disclosure("Language", ["English", "Deutsch"], "large-up-hide")}</div></div></div></details></header-drawer>
  <h1><a href="/">Harrow</a></h1>
  <nav class="header__menu"><ul class="list-unstyled">${departments.map(({ title, href, parts }) => html`
    <li><header-menu><details><summary>${title}</summary><div class="mega"><ul>${parts.map((part) => `<li><a href="${href}/${slug(part)}">${part}</a></li>`)}</ul></div></details></header-menu></li>`)}</ul></nav>
  <div class="header__icons"><details-modal class="header__search"><details><summary role="button" aria-haspopup="dialog" aria-label="Search">⌕</summary><div class="search-modal" role="dialog"><form action="/search"><label for="s">Search</label><input id="s" type="search" name="q"><button type="reset" class="hidden">Clear</button><button>Go</button></form><button class="search-close" aria-label="Close">×</button></div></details></details-modal>
    <a href="/account" class="small-hide" rel="nofollow"><svg class="icon"></svg><span class="visually-hidden">Log in</span></a><a href="/cart" id="cart-icon"><svg></svg><span class="visually-hidden">Cart</span><span aria-hidden="true">3</span></a></div>
</header></sticky-header></div>
<main id="MainContent">${main}</main>
<footer class="shopify-section footer">${["Shop", "Help"].map((word) => html`<div class="footer-block"><h2>${word}</h2><ul>${["Search", "Contact", "Terms"].map((each) => `<li><a href="/pages/${slug(each)}">${word}: ${each}</a></li>`)}</ul></div>`)}
  <form><input type="email" aria-label="Email"><button aria-label="Subscribe">→</button></form>${disclosure("Country", countries.slice(5), "no-js-hidden")}<div class="no-js"><button>Update</button></div>
  <a class="landscape-only" href="/wide">Landscape</a><a class="between-only" href="/tablet">Tablet</a><a class="desktop-note" href="/d">Desktop note</a><a class="phone-note" href="/p">Phone note</a><a class="retina-zoom" href="/z">Zoom</a>
  <a class="after-broken" href="/a">After the broken rule</a><a class="recovered" href="/r">Recovered</a><span class="broken"><a class="after-broken" href="/b">Within the broken rule</a></span></footer>
${cartDrawer(cart)}
</body></html>`;
