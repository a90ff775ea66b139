import { html, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

export default page("Lumen Yard", html`
  <div id="hero" class="carousel slide" data-bs-ride="false">
    <div class="carousel-indicators">${[0, 1, 2].map((i) => `<button type="button" data-bs-target="#hero" data-bs-slide-to="${i}" ${i ? "" : 'class="active" aria-current="true"'} aria-label="Slide ${i + 1}"></button>`)}</div>
    <div class="carousel-inner">${["Light for reading", "Light for dinner", "Light for leaving"].map((title, i) => html`
      <div class="carousel-item ${i ? "" : "active"}"><h2>${title}</h2><div class="carousel-caption d-none d-md-block"><a class="btn btn-light" href="/theme/${i}">${title}: see all</a></div><a href="/theme/${i}" class="d-md-none">Tap to see</a></div>`)}</div>
    <button class="carousel-control-prev" type="button" data-bs-target="#hero" data-bs-slide="prev"><span class="visually-hidden">Previous</span></button>
    <button class="carousel-control-next" type="button" data-bs-target="#hero" data-bs-slide="next"><span class="visually-hidden">Next</span></button>
  </div>
  <div class="row row-cols-2 row-cols-md-3 row-cols-lg-4 g-3 mt-3">${products.map(card)}</div>
  <ul class="nav nav-pills d-none d-lg-flex"><li class="nav-item"><a class="nav-link active" href="#new">New</a></li><li class="nav-item"><a class="nav-link" href="#sale">Sale</a></li></ul>
  <select class="form-select d-lg-none" aria-label="Which products"><option>New<option>Sale</select>
  <div class="toast-container position-fixed bottom-0 end-0"><div class="toast" role="status"><div class="toast-body">Saved. <button class="btn btn-sm">Undo</button></div></div>
    <div class="toast show" role="alert"><div class="toast-header">Cookies <button type="button" class="btn-close" data-bs-dismiss="toast" aria-label="Close"></button></div><div class="toast-body"><button class="btn btn-primary">Allow</button><button class="btn">Refuse</button></div></div></div>
`, { extra: html`<div class="modal fade" id="letter" tabindex="-1" aria-hidden="true"><div class="modal-dialog"><div class="modal-content"><button class="btn-close" data-bs-dismiss="modal" aria-label="Close"></button><input type="email" aria-label="Your e-mail"><button class="btn btn-primary">Join</button></div></div></div>` });
