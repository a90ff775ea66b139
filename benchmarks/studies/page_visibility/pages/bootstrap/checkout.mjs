import { countries, html, price, products } from "../../shop.mjs";
import { page } from "./layout.mjs";

const field = (label, name, more = "", classes = "") => `<div class="${classes}"><label class="form-label" for="${name}">${label}</label><input class="form-control" id="${name}" ${more}><div class="invalid-feedback">Needed. <a href="/help#${name}">Help with ${label.toLowerCase()}</a></div></div>`;

export default page("Checkout", html`
  <div class="row g-5 flex-lg-row-reverse">
    <div class="col-lg-4"><button class="btn w-100 d-lg-none collapsed" type="button" data-bs-toggle="collapse" data-bs-target="#summary">Summary</button>
      <div class="collapse d-lg-block" id="summary"><ul class="list-group">${products.slice(0, 3).map((each) => `<li class="list-group-item"><a href="/item/${each.id}">${each.title}</a> ${price(each.cents)} <button class="btn-close d-none d-xl-inline-block" aria-label="Remove ${each.title}"></button></li>`)}</ul>
      <form class="input-group"><input class="form-control" placeholder="Promo code" aria-label="Promo code"><button class="btn">Redeem</button></form></div></div>
    <div class="col-lg-8"><form class="row g-3 was-validated" novalidate>
      ${field("First name", "first", "required value=Ada", "col-sm-6")}${field("Last name", "last", "required", "col-sm-6")}${field("E-mail", "mail", "type=email", "col-12")}${field("Street", "street", "required", "col-12")}
      <div class="col-md-5"><select class="form-select" required aria-label="Country"><option value="">Choose</option>${countries.map((each) => `<option>${each}`)}</select></div>
      <div class="col-12"><div class="form-check"><input type="checkbox" class="form-check-input" id="same" checked data-bs-toggle="collapse" data-bs-target="#billing"><label class="form-check-label" for="same">Bill the same address</label></div></div>
      <div class="collapse col-12" id="billing">${field("Street of the bill", "bill")}</div>
      <div class="accordion" id="payment">${["Card", "Debit", "Voucher"].map((way, i) => html`<div class="accordion-item"><h2 class="accordion-header"><button class="accordion-button ${i ? "collapsed" : ""}" type="button" data-bs-toggle="collapse" data-bs-target="#pay-${i}">${way}</button></h2>
        <div id="pay-${i}" class="accordion-collapse collapse ${i ? "" : "show"}" data-bs-parent="#payment"><div class="accordion-body">${field(`${way} number`, `number-${i}`)}<button type="button" class="btn visible">Use saved ${way.toLowerCase()}</button></div></div></div>`)}</div>
      <div class="invisible"><button type="button" class="btn">Back</button><button type="button" class="btn visible">Help</button></div>
      <button class="btn btn-primary btn-lg col-12">Continue</button></form></div></div>
  <ul class="nav d-flex d-sm-none d-md-flex"><li><a href="/terms">Terms</a></li></ul>`);
