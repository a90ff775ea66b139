import { brands, html, products, slug } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

const group = (title, values, i) => html`
  <div class="accordion-item"><h2 class="accordion-header"><button class="accordion-button ${i ? "collapsed" : ""}" type="button" data-bs-toggle="collapse" data-bs-target="#by-${slug(title)}">${title}</button></h2>
    <div id="by-${slug(title)}" class="accordion-collapse collapse ${i ? "" : "show"}"><div class="accordion-body">
      ${values.map((value, j) => `<div class="form-check ${j > 3 ? "more" : ""}"><input class="form-check-input" type="checkbox" id="${slug(title)}-${j}"><label class="form-check-label" for="${slug(title)}-${j}">${value}</label></div>`)}
      <button type="button" class="btn btn-link show-more">More ${title.toLowerCase()}</button></div></div></div>`;

export const acts = [["#account", "click"], ["[data-bs-target='#by-size']", "click"], ["[data-bs-title]", "hover"]];

export default page("Lamps", html`
  <nav aria-label="breadcrumb"><ol class="breadcrumb"><li class="breadcrumb-item"><a href="/">Home</a></li><li class="breadcrumb-item d-none d-sm-block"><a href="/home">Home goods</a></li><li class="breadcrumb-item active" aria-current="page">Lamps</li></ol></nav>
  <button class="btn btn-outline-secondary d-lg-none" type="button" data-bs-toggle="offcanvas" data-bs-target="#filters">Filter</button>
  <div class="row">
    <aside class="col-lg-3"><div class="offcanvas-lg offcanvas-start" tabindex="-1" id="filters">
      <div class="offcanvas-header"><h5>Filter</h5><button type="button" class="btn-close" data-bs-dismiss="offcanvas" data-bs-target="#filters" aria-label="Close the filters"></button></div>
      <div class="offcanvas-body d-block"><div class="accordion accordion-flush">${group("Brand", brands, 0)}${group("Size", ["Small", "Medium", "Large"], 1)}${group("Material", ["Brass", "Steel", "Linen", "Glass", "Oak"], 2)}</div>
        <button class="btn btn-primary w-100 d-lg-none">Show ${products.length}</button></div></div></aside>
    <section class="col-lg-9">
      <div class="d-flex"><div class="btn-group d-none d-md-inline-flex" role="group"><input type="radio" class="btn-check" name="view" id="grid" checked><label class="btn" for="grid">Grid</label><input type="radio" class="btn-check" name="view" id="list"><label class="btn" for="list">List</label></div>
        <select class="form-select w-auto ms-auto" aria-label="Order"><option>Best<option>Cheapest</select></div>
      <div class="row row-cols-2 row-cols-xl-3 g-3">${products.map(card)}</div>
      <nav aria-label="Pages"><ul class="pagination justify-content-center"><li class="page-item disabled"><a class="page-link">Previous</a></li>${[1, 2, 3, 4, 5].map((n) => `<li class="page-item ${n === 1 ? "active" : n > 2 ? "d-none d-sm-block" : ""}"><a class="page-link" href="?page=${n}">${n}</a></li>`)}<li class="page-item"><a class="page-link" href="?page=2">Next</a></li></ul></nav>
    </section>
  </div>`, { style: `
  .more { display: none; }
  .accordion-body:has(.show-more[aria-expanded=true]) .more { display: block; }
  .accordion-collapse:not(.show) .show-more { display: none; }
  @media (max-width: 991.98px) { .card .collapse:not(.show) + *, .breadcrumb-item + .breadcrumb-item:not(.active) { display: none !important; } }` });
