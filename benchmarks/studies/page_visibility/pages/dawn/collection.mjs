import { brands, html, products } from "../../shop.mjs";
import { card, disclosure, page } from "./layout.mjs";

const FACETS = { Brand: brands, Color: ["Cream", "Forest", "Slate", "Oat", "Indigo", "Glass", "Amber", "Heather", "Moss", "Rust", "Stone"], Availability: ["In stock", "Out of stock"] };
const list = (title, prefix) => html`<ul class="facets__list list-unstyled">${FACETS[title].map((value, i) => html`<li class="facets__item ${i > 7 ? "show-more-item" : ""}"><label for="${prefix}-${title}-${i}"><input type="checkbox" id="${prefix}-${title}-${i}" value="${value}" ${i === 1 ? "disabled" : ""}>${value}</label></li>`)}${FACETS[title].length > 8 ? `<li><input type="checkbox" class="show-more" aria-label="Show more ${title.toLowerCase()}" ${prefix === "m" ? "checked" : ""}></li>` : ""}</ul>`;

export default page("All kitchen", html`
  <facet-filters-form class="facets"><form><p class="facets__heading">Filter:</p>${Object.keys(FACETS).map((title) => html`
    <details class="disclosure-has-popup facets__disclosure" ${title === "Color" ? "open" : ""}><summary><span>${title}</span></summary><div class="facets__display"><div class="facets__header"><span>0 selected</span><facet-remove><a href="/collections/all" class="facets__reset underlined-link">Reset ${title}</a></facet-remove></div>${list(title, "d")}</div></details>`)}
    <div class="facet-filters sorting"><label for="SortBy">Sort by:</label><select id="SortBy"><option>Featured<option>Price</select><noscript><button>Sort</button></noscript></div></form></facet-filters-form>
  <menu-drawer class="mobile-facets__wrapper"><details class="mobile-facets__disclosure menu-opening" open><summary class="mobile-facets__open-wrapper">Filter and sort</summary><div class="mobile-facets"><div class="mobile-facets__inner">
    <button class="mobile-facets__arrow" aria-label="Close filters">×</button>${Object.keys(FACETS).map((title, i) => `<details ${i === 1 ? "open" : ""}><summary>${title}</summary><div class="mobile-facets__submenu"><button class="mobile-facets__back">Back from ${title}</button>${list(title, "m")}</div></details>`)}
    <div class="mobile-facets__footer"><facet-remove><a href="/collections/all">Remove all</a></facet-remove><button class="button">Apply</button></div></div></div></details></menu-drawer>
  <div class="active-facets"><facet-remove><a href="?">Cream ×</a></facet-remove></div><div class="active-facets"><button>No facet</button></div>
  <ul class="grid grid--peek list-unstyled">${products.map(card)}</ul>
  <nav class="pagination" aria-label="Pagination"><ul><li><a href="?page=0" class="link--text" aria-disabled="true">Previous</a></li>${[1, 2, 3].map((n) => `<li><a href="?page=${n}" aria-label="Page ${n}">${n}</a></li>`)}</ul></nav>${disclosure("Products per page", ["24", "48"])}`, { drawer: true });
