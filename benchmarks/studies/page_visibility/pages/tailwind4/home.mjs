import { departments, html, products } from "../../shop.mjs";
import { page, productCard } from "./layout.mjs";

export default page("Home", html`
  <section class="relative flex snap-x gap-4 overflow-x-auto no-scrollbar" aria-roledescription="carousel">
    ${["Autumn table", "Rain or shine", "Small gifts"].map((title, i) => html`
      <div class="w-full shrink-0 snap-start" ${i ? "aria-hidden=true" : ""}>
        <h2>${title}</h2>
        <a href="listing.html?set=${i}" class="btn-primary">Shop ${title.toLowerCase()}</a>
        <a href="/journal/${i}" class="btn hidden nth-1:inline-flex sm:inline-flex">Read on</a>
      </div>`)}
    <button type="button" class="absolute start-2 top-1/2 hidden pointer-fine:block" aria-label="Previous slide">‹</button>
    <button type="button" class="absolute end-2 top-1/2 hidden pointer-fine:block" aria-label="Next slide">›</button>
  </section>
  <h2 class="mt-8">Departments</h2>
  <ul class="grid grid-cols-2 gap-4 md:grid-cols-4">
    ${departments.map(({ title, href }) => `<li class="even:max-[400px]:hidden"><a href="${href}">${title}</a></li>`)}
  </ul>
  <h2 class="mt-8">New in</h2>
  <ul class="grid grid-cols-2 gap-4 lg:grid-cols-4 [&>li:nth-child(n+9)]:hidden lg:[&>li:nth-child(n+9)]:flex">
    ${products.map(productCard)}
  </ul>
  <a href="listing.html" class="btn-primary mt-4 lg:hidden">See everything</a>
  <section class="mt-8 hidden md:block">
    <h2>From the journal</h2>
    ${["Seasoning a pan", "Layering in rain", "A board for life"].map((title) => `<a class="block lg:inline *:hidden" href="/journal/${title.split(" ")[0]}">${title} <span>→</span></a>`)}
  </section>
  <div class="fixed inset-x-0 bottom-0 z-40 bg-white p-4 shadow-lg starting:opacity-0" id="cookies" role="region" aria-label="Cookies">
    <p>May we count visits?</p>
    <button type="button" class="btn-primary" data-hide="#cookies">Yes</button>
    <button type="button" class="btn" data-hide="#cookies">No</button>
    <button type="button" class="btn" data-toggle="#cookie-kinds" aria-expanded="false">Choose</button>
    <fieldset id="cookie-kinds" class="hidden data-open:block">
      <label><input type="checkbox" checked disabled> Needed</label>
      <label><input type="checkbox" class="peer"> Statistics <span class="hidden peer-checked:inline">on</span></label>
      <button type="button" class="btn">Save choice</button>
    </fieldset>
  </div>`);
