import { brands, html, products, slug } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

export const acts = [["#sort", "click"], ["[data-more]", "click"]];

export default page("Garden", html`
  <div class="flex items-baseline justify-between border-b py-6">
    <h1>Garden</h1>
    <div class="relative">
      <button id="sort" aria-expanded="false" onclick="this.setAttribute('aria-expanded', this.ariaExpanded !== 'true')">Sort</button>
      <div class="menu-panel absolute right-0 z-20 w-40 bg-white" role="menu">${["Popular", "Newest", "Price"].map((word) => `<a href="?sort=${slug(word)}" role="menuitem" class="block">${word}</a>`)}</div>
    </div>
    <button class="hidden sm:block" aria-label="View as grid">▦</button>
    <button class="lg:hidden" onclick="document.querySelector('.sheet').classList.add('is-open')">Filters</button>
  </div>
  <div class="sheet lg:hidden" role="dialog"><div><button>Close filters</button>
    ${brands.map((brand) => `<label class="block"><input type="checkbox" name="brand"> ${brand}</label>`)}<button>Apply</button></div></div>
  <div class="lg:grid lg:grid-cols-4">
    <form class="hidden lg:block">
      ${["Brand", "Price", "Rating"].map((title, i) => html`
        <div class="border-b py-4"><button type="button" aria-expanded="${i === 0}" data-${i === 1 ? "more" : "less"} onclick="this.setAttribute('aria-expanded', this.ariaExpanded !== 'true')">${title}</button>
        <div class="menu-panel">${(i === 0 ? brands : i === 1 ? ["Under $50", "$50 to $100", "Over $100"] : ["4 and up", "3 and up"]).map((value, j) => `<label class="block ${j > 4 ? "hidden" : ""}"><input type="checkbox" value="${value}"> ${value}</label>`)}</div></div>`)}
      <input type="range" min="0" max="200" aria-label="Highest price" class="w-full">
    </form>
    <div class="col-span-3 grid grid-cols-2 gap-4 md:grid-cols-3">${products.map(card)}</div>
  </div>
  <nav class="mt-6 flex items-center justify-between">
    <div class="flex flex-1 justify-between sm:hidden"><a href="#">Previous</a><a href="?page=2">Next</a></div>
    <div class="hidden sm:flex"><a href="?page=1" aria-current="page">1</a><a href="?page=2">2</a><a href="?page=3" class="hidden md:inline-flex">3</a><span>…</span><a href="?page=9">9</a></div>
  </nav>
`);
