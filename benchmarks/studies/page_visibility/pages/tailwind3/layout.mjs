import { departments, html, products, price, slug } from "../../shop.mjs";

export const card = (each) => html`
  <article class="group relative" data-product>
    <a href="/p/${each.id}" class="block"><span aria-hidden="true" class="absolute inset-0"></span>${each.title}</a>
    <p class="text-sm">${price(each.cents)}</p>
    <button class="absolute right-2 top-2 z-10 hidden group-hover:block touch:block" aria-label="Add ${each.title} to wish list">♥</button>
    <div class="pointer-events-none invisible absolute inset-x-0 bottom-0 group-focus-within:visible group-hover:pointer-events-auto group-hover:visible">
      ${each.sizes.map((size) => `<button class="border px-2">${size}</button>`)}
    </div>
    <a href="/p/${each.id}#reviews" class="relative z-10 hidden md:inline">${each.reviews} reviews</a>
  </article>`;

export const page = (title, main, { attributes = "" } = {}) => html`<!doctype html>
<html lang="en" class="scroll-smooth">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title} | Plot &amp; Row</title>
<noscript><style>.no-js-hide { display: none }</style></noscript>
<link href="style.css" rel="stylesheet"></head>
<body><div id="app" ${attributes}>
  <a class="sr-only focus:not-sr-only focus:absolute" href="#content">Skip navigation</a>
  <div class="bg-gray-900 text-white">
    <div class="mx-auto hidden max-w-6xl justify-between px-4 lg:flex">
      <label>Currency <select><option>USD</option><option>EUR</option></select></label>
      <p>Delivery worldwide <a href="/delivery" class="underline">Details</a></p>
      <div><a href="/signup">Create an account</a> <a href="/login">Sign in</a></div>
    </div>
    <p class="text-center lg:hidden"><a href="/delivery">Delivery worldwide</a></p>
  </div>
  <header class="relative bg-white">
    <div class="mx-auto flex h-16 max-w-6xl items-center px-4">
      <button class="p-2 lg:hidden" id="burger" aria-expanded="false" onclick="this.setAttribute('aria-expanded', this.ariaExpanded !== 'true')"><span class="sr-only">Menu</span>☰</button>
      <nav class="menu-panel absolute inset-x-0 top-full bg-white lg:static lg:ml-8 lg:!block" aria-label="Departments">
        <ul class="lg:flex lg:gap-8">
          ${departments.map(({ title, href, parts }) => html`
            <li class="group relative">
              <a href="${href}" class="hidden lg:block">${title}</a>
              <button class="peer block w-full text-left lg:hidden" aria-expanded="false" onclick="this.setAttribute('aria-expanded', this.ariaExpanded !== 'true')">${title}</button>
              <div class="menu-panel lg:absolute lg:z-20 lg:bg-white lg:p-4 lg:group-hover:block">
                ${parts.map((part) => `<a class="block whitespace-nowrap" href="${href}/${slug(part)}">${part}</a>`)}
              </div>
            </li>`)}
        </ul>
      </nav>
      <a href="/" class="mx-auto font-serif lg:ml-0 lg:mr-auto">Plot &amp; Row</a>
      <form action="/search" class="hidden md:block"><input name="q" placeholder="Search the shop" class="border"><button class="sr-only">Search</button></form>
      <button class="md:hidden" aria-label="Search">⌕</button>
      <div class="relative ml-4" x-data="{ open: false }">
        <button x-on:click="open = !open">Cart <span class="hidden sm:inline">(2)</span></button>
        <div x-show="open" style="display: none;" x-transition class="absolute right-0 w-72">
          ${products.slice(1, 3).map((each) => `<a href="/p/${each.id}">${each.title}</a> <button>Remove</button>`)}<a href="/checkout">Check out</a>
        </div>
      </div>
    </div>
  </header>
  <main id="content" class="mx-auto max-w-6xl px-4">${main}</main>
  <footer class="mt-12 border-t">
    ${["Shop", "Company", "Legal"].map((title) => html`
      <section class="border-b sm:inline-block sm:border-0"><h3><button class="expanded:font-bold sm:pointer-events-none" aria-expanded="${title === "Legal"}">${title}</button><span class="menu-panel"></span></h3>
        <ul class="hidden sm:block">${["One", "Two", "Three"].map((word) => `<li><a href="/${slug(title)}/${word}">${title} page ${word}</a></li>`)}</ul></section>`)}
    <div class="no-js:block hidden"><a href="/no-js">Without scripts</a></div>
    <div class="only-tablet hidden"><a href="/tablet">Tablet catalogue</a></div>
    <div class="hidden tall:block"><a href="/tall">Our tall story</a></div>
    <div class="hidden dark:block"><button>Day</button></div><div class="dark:hidden"><button>Night</button></div>
  </footer>
</div></body></html>`;
