import { departments, html, price, products, slug } from "../../shop.mjs";

export const card = (each, i) => html`
  <div class="col">
    <div class="card h-100">
      <button type="button" class="btn-close position-absolute top-0 end-0 d-none" aria-label="Hide ${each.title}"></button>
      <div class="card-body">
        <a href="/item/${each.id}" class="card-title stretched-link">${each.title}</a>
        <p class="card-text">${price(each.cents)} <small class="text-body-secondary d-none d-md-inline">by <a href="/brand/${slug(each.brand)}">${each.brand}</a></small></p>
      </div>
      <div class="card-footer d-flex gap-2 position-relative z-2">
        <button type="button" class="btn btn-primary btn-sm">Add to cart</button>
        <button type="button" class="btn btn-outline-secondary btn-sm d-none d-lg-inline-block" data-bs-toggle="tooltip" data-bs-title="Compare ${each.title}">Compare</button>
        <button type="button" class="btn btn-sm d-lg-none" aria-label="Compare ${each.title}">⇆</button>
        ${each.colors.length ? html`<button class="btn btn-sm" type="button" data-bs-toggle="collapse" data-bs-target="#colors-${i}">Colors</button>` : ""}
      </div>
      <div class="collapse" id="colors-${i}">${each.colors.map((color, j) => html`<input type="radio" class="btn-check" name="color-${i}" id="color-${i}-${j}" autocomplete="off"><label class="btn btn-sm" for="color-${i}-${j}">${color}</label>`)}</div>
    </div>
  </div>`;

const header = html`
  <a class="visually-hidden-focusable" href="#main">Skip to main content</a>
  <div class="alert alert-warning alert-dismissible fade show mb-0" role="alert">Orders placed today leave on Thursday. <a href="/notice" class="alert-link">Why?</a><button type="button" class="btn-close" data-bs-dismiss="alert" aria-label="Close"></button></div>
  <nav class="navbar navbar-expand-lg bg-body-tertiary sticky-top">
    <div class="container-xl">
      <button class="navbar-toggler" type="button" data-bs-toggle="offcanvas" data-bs-target="#nav" aria-controls="nav" aria-label="Toggle navigation"><span class="navbar-toggler-icon"></span></button>
      <a class="navbar-brand" href="/">Lumen Yard</a>
      <div class="offcanvas offcanvas-start" tabindex="-1" id="nav" aria-labelledby="nav-title">
        <div class="offcanvas-header"><h5 id="nav-title">Departments</h5><button type="button" class="btn-close" data-bs-dismiss="offcanvas" aria-label="Close the menu"></button></div>
        <div class="offcanvas-body">
          <ul class="navbar-nav">
            ${departments.map(({ title, href, parts }) => html`
              <li class="nav-item dropdown">
                <a class="nav-link dropdown-toggle" href="${href}" role="button" data-bs-toggle="dropdown" data-bs-display="static" aria-expanded="false">${title}</a>
                <ul class="dropdown-menu">${parts.map((part) => `<li><a class="dropdown-item" href="${href}/${slug(part)}">${part}</a></li>`)}<li class="d-none d-xxl-block"><a class="dropdown-item" href="${href}">Everything</a></li></ul>
              </li>`)}
            <li class="nav-item d-lg-none"><a class="nav-link" href="/stores">Find a store</a></li>
          </ul>
        </div>
      </div>
      <form class="d-none d-md-flex ms-auto" role="search"><div class="input-group"><input class="form-control" type="search" aria-label="Search"><button class="btn btn-outline-success">Search</button></div></form>
      <button class="btn d-md-none" type="button" data-bs-toggle="collapse" data-bs-target="#phone-search" aria-label="Search"></button>
      <div class="dropdown"><button class="btn dropdown-toggle" data-bs-toggle="dropdown" aria-expanded="false" id="account">Account</button>
        <ul class="dropdown-menu dropdown-menu-end"><li><a class="dropdown-item" href="/orders">Orders</a></li><li><a class="dropdown-item disabled" aria-disabled="true">Rewards</a></li><li><hr class="dropdown-divider"></li><li><button class="dropdown-item" type="button">Log out</button></li></ul></div>
      <button class="btn" type="button" data-bs-toggle="offcanvas" data-bs-target="#cart" aria-controls="cart">Cart <span class="badge text-bg-secondary">3</span><span class="visually-hidden">items</span></button>
    </div>
    <div class="collapse container" id="phone-search"><form><input type="search" class="form-control" aria-label="Search on the phone"><button class="btn">Go</button></form></div>
  </nav>`;

const cart = html`
  <div class="offcanvas offcanvas-end" tabindex="-1" id="cart" aria-labelledby="cart-title">
    <div class="offcanvas-header"><h5 id="cart-title">Cart</h5><button type="button" class="btn-close" data-bs-dismiss="offcanvas" aria-label="Close the cart"></button></div>
    <div class="offcanvas-body">${products.slice(5, 8).map((each, i) => html`
      <div class="d-flex"><a href="/item/${each.id}">${each.title}</a><select class="form-select" aria-label="Quantity">${[1, 2, 3].map((n) => `<option>${n}`)}</select><button class="btn btn-link ${i === 2 ? "invisible" : ""}">Remove</button></div>`)}
      <a class="btn btn-primary w-100" href="/checkout">Check out</a></div>
  </div>`;

const footer = html`
  <footer class="container py-5"><div class="row">
    ${["Service", "About us", "Law"].map((title) => html`<div class="col-12 col-md-4"><h5 class="d-none d-md-block">${title}</h5>
      <button class="btn d-md-none" type="button" data-bs-toggle="collapse" data-bs-target="#foot-${slug(title)}">${title}</button>
      <div class="collapse d-md-block" id="foot-${slug(title)}">${["First", "Second", "Third"].map((word) => `<a class="nav-link" href="/${slug(title)}/${word}">${word} of ${title.toLowerCase()}</a>`)}</div></div>`)}
    </div><a class="d-none d-print-inline" href="/qr">Printed page</a><a class="d-print-none" href="#top">To the top</a>
    <div class="btn-toolbar d-none d-sm-flex d-md-none"><button class="btn">Only on small</button></div></footer>`;

export const page = (title, main, { extra = "", style = "" } = {}) => html`<!doctype html>
<html lang="en" data-bs-theme="light"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<link href="bootstrap.min.css" rel="stylesheet"><style>${style}</style></head>
<body>${header}<main id="main" class="container-xl">${main}</main>${footer}${cart}${extra}
<script src="bootstrap.bundle.min.js"></script>
<script>document.querySelectorAll('[data-bs-toggle="tooltip"]').forEach((each) => new bootstrap.Tooltip(each)); document.querySelectorAll('[data-bs-toggle="popover"]').forEach((each) => new bootstrap.Popover(each, { html: true, sanitize: false }));</script></body></html>`;
