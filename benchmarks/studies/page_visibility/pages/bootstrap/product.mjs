import { html, price, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

const lamp = products[7];

export default page(lamp.title, html`
  <div class="row">
    <div class="col-md-7"><div id="pictures" class="carousel carousel-dark slide"><div class="carousel-inner">${["Lit", "Unlit", "Switch"].map((view, i) => `<div class="carousel-item ${i ? "" : "active"}"><a href="#${view}">${view} in full size</a></div>`)}</div>
      <button class="carousel-control-prev" type="button" data-bs-target="#pictures" data-bs-slide="prev" aria-label="Previous picture"></button><button class="carousel-control-next" type="button" data-bs-target="#pictures" data-bs-slide="next" aria-label="Next picture"></button></div>
      <div class="d-none d-md-flex">${["Lit", "Unlit", "Switch"].map((view, i) => `<button type="button" class="btn p-0" data-bs-target="#pictures" data-bs-slide-to="${i}">${view}</button>`)}</div></div>
    <div class="col-md-5"><h1>${lamp.title}</h1><p>${price(lamp.cents)}</p>
      <div>${lamp.colors.map((color, i) => `<input type="radio" class="btn-check" name="color" id="c${i}" ${i ? "" : "checked"}><label class="btn btn-outline-dark" for="c${i}">${color}</label>`)}</div>
      <div class="form-check form-switch"><input class="form-check-input" type="checkbox" role="switch" id="bulb"><label class="form-check-label" for="bulb">With a bulb</label></div>
      <div class="bulb-kind"><label class="form-label" for="kind">Which bulb</label><select class="form-select" id="kind"><option>Warm<option>Cold</select></div>
      <div class="input-group"><button class="btn" type="button">−</button><input type="number" class="form-control" value="1" aria-label="Quantity"><button class="btn" type="button">+</button></div>
      <button class="btn btn-primary btn-lg w-100" type="button" data-bs-toggle="modal" data-bs-target="#added">Add to cart</button>
      <button class="btn btn-link" type="button" data-bs-toggle="popover" data-bs-placement="bottom" data-bs-title="Energy" data-bs-content='<a href="/label">Energy label</a> <button>Compare labels</button>' id="energy">Energy class</button>
    </div></div>
  <ul class="nav nav-tabs" role="tablist">${["Description", "Reviews", "Questions"].map((title, i) => `<li class="nav-item ${i === 2 ? "d-none d-sm-block" : ""}" role="presentation"><button class="nav-link ${i ? "" : "active"}" data-bs-toggle="tab" data-bs-target="#${title}" type="button" role="tab">${title}</button></li>`)}</ul>
  <div class="tab-content"><div class="tab-pane fade show active" id="Description" role="tabpanel"><a href="/manual.pdf">Manual</a></div>
    <div class="tab-pane fade" id="Reviews" role="tabpanel">${[5, 4, 3].map((stars) => `<a href="#r${stars}">${stars} stars</a> <button class="btn">Helpful</button>`)}</div>
    <div class="tab-pane" id="Questions" role="tabpanel"><textarea class="form-control" aria-label="Your question"></textarea><button class="btn">Ask</button></div></div>
  <div class="row row-cols-2 row-cols-lg-4">${products.slice(0, 4).map(card)}</div>
  <div class="fixed-bottom d-md-none bg-body p-2"><button class="btn btn-primary w-100">Add to cart – ${price(lamp.cents)}</button></div>
`, { style: ".bulb-kind { visibility: hidden; } .form-check:has(:checked) + .bulb-kind { visibility: visible; }", extra: html`
  <div class="modal fade" id="added" tabindex="-1"><div class="modal-dialog modal-dialog-centered"><div class="modal-content"><div class="modal-header"><h5>In your cart</h5><button type="button" class="btn-close" data-bs-dismiss="modal" aria-label="Close"></button></div>
    <div class="modal-body">Go on with <a href="/item/seed-box">a seed box</a>?</div><div class="modal-footer"><button class="btn btn-secondary" data-bs-dismiss="modal">Keep shopping</button><a class="btn btn-primary" href="/checkout">Check out</a></div></div></div></div>` });
