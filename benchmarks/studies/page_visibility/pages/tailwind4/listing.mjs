import { brands, html, products, slug } from "../../shop.mjs";
import { page, productCard } from "./layout.mjs";

const SETS = { Brand: brands, Size: ["XS", "S", "M", "L", "XL"], Color: ["Cream", "Forest", "Slate", "Oat", "Indigo", "Rust", "Moss", "Navy"] };

const filter = ([title, values], i) => html`
  <details class="group border-b" ${i === 0 ? "open" : ""}>
    <summary class="py-2">${title} <span class="hidden group-has-checked:inline">•</span></summary>
    <div class="group/set flex flex-col" data-state="${i === 2 ? "short" : "long"}">
      ${values.map((value) => html`<label class="group-data-[state=short]/set:nth-[n+6]:hidden"><input type="checkbox" name="${slug(title)}" value="${value}"> ${value}</label>`)}
      <button type="button" class="hidden group-data-[state=short]/set:block">Show all ${values.length}</button>
      <button type="reset" class="hidden group-has-[:checked]/set:inline-block">Clear ${title.toLowerCase()}</button>
    </div>
  </details>`;

export default page("All products", html`
  <nav aria-label="Breadcrumb" class="flex gap-2 *:not-last:after:content-['/']">
    <a href="home.html">Home</a><a href="/kitchen" class="hidden sm:inline">Kitchen</a><a href="listing.html" aria-disabled="true">All</a>
  </nav>
  <div class="grid gap-8 lg:grid-cols-[16rem_1fr]">
    <div>
      <button type="button" class="btn lg:hidden" data-toggle="#filters" aria-expanded="false">Filters</button>
      <form id="filters" class="group/filters max-lg:fixed max-lg:inset-0 max-lg:z-30 max-lg:bg-white max-lg:not-data-open:hidden lg:block">
        <div class="flex justify-between lg:hidden"><h2>Filters</h2><button type="button" data-toggle="#filters">Close filters</button></div>
        ${Object.entries(SETS).map(filter)}
        <label class="flex"><input type="checkbox" name="stock" class="peer" checked> In stock only
          <a href="/alerts" class="hidden peer-checked:inline">Alert me</a><a href="/restock" class="inline peer-checked:hidden">Restock dates</a></label>
        <div class="sticky bottom-0 flex gap-2">
          <button class="btn-primary lg:hidden">Show ${products.length} results</button>
          <button type="reset" class="btn invisible group-has-checked/filters:visible">Reset</button>
        </div>
      </form>
    </div>
    <div class="@container">
      <div class="flex items-center gap-4">
        <label class="hidden @md:block">Sort by <select name="sort"><option>Featured<option>Price<option>Newest</select></label>
        <div role="radiogroup" aria-label="View" class="hidden @2xl:flex">
          <label><input type="radio" name="view" class="sr-only" checked> Grid</label><label><input type="radio" name="view" class="sr-only"> List</label>
        </div>
        <button type="button" class="@md:hidden">Sort</button>
      </div>
      <div class="flex flex-wrap gap-2 has-[>button:only-child]:hidden">
        <button type="button" class="btn">In stock ×</button><button type="button" class="btn">Clear all</button>
      </div>
      <div class="flex has-[>button:only-child]:hidden"><button type="button">Save this search</button></div>
      <ul class="grid grid-cols-1 gap-4 @sm:grid-cols-2 @3xl:grid-cols-3">${products.map(productCard)}</ul>
      <nav aria-label="Pagination" class="mt-8 flex justify-center gap-1">
        <a href="?page=1" class="btn aria-disabled:invisible" aria-disabled="true">Previous</a>
        ${[1, 2, 3, 4, 5, 6].map((number) => `<a href="?page=${number}" class="btn ${number > 2 && number < 6 ? "hidden sm:inline-flex" : ""}">${number}</a>`)}
        <a href="?page=2" class="btn">Next</a>
      </nav>
    </div>
  </div>`);
