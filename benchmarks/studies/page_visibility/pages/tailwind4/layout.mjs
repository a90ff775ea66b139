import { departments, html, price, products, slug } from "../../shop.mjs";

export const productCard = (each) => html`
  <li class="group/card @container relative flex flex-col rounded-lg border p-3">
    <a href="product.html" class="font-medium after:absolute after:inset-0">${each.title}</a>
    <p class="text-sm text-gray-600">${each.brand} · ${each.rating} <span class="sr-only">of 5 stars</span> (${each.reviews})</p>
    <p>${price(each.cents)} ${each.was ? `<s class="hidden @xs:inline">${price(each.was)}</s>` : ""}</p>
    <div class="relative z-10 hidden gap-2 group-hover/card:flex group-focus-within/card:flex pointer-coarse:flex">
      <button type="button" class="btn-primary" data-add="${each.id}">Quick add</button>
      <button type="button" class="btn max-sm:hidden" aria-label="Compare ${each.title}">⇄</button>
    </div>
    <button type="button" class="absolute end-2 top-2 hidden @min-[200px]:block" aria-pressed="false" aria-label="Save ${each.title}">♡</button>
  </li>`;

export const header = html`
  <a href="#main" class="sr-only focus:not-sr-only">Skip to the products</a>
  <div class="relative isolate bg-brand text-white not-has-[p]:hidden" id="banner">
    <p>Free delivery above $60. <a href="/delivery" class="underline max-[420px]:hidden">How it works</a></p>
    <button type="button" class="absolute end-2 top-0" data-hide="#banner" aria-label="Dismiss">×</button>
  </div>
  <header class="sticky top-0 z-20 border-b bg-white">
    <nav class="mx-auto flex h-16 max-w-7xl items-center gap-4 px-4" aria-label="Main">
      <button type="button" class="lg:hidden" data-toggle="#menu" aria-controls="menu" aria-expanded="false">
        <span class="sr-only">Open main menu</span>
        <svg class="size-6 in-aria-expanded:hidden" viewBox="0 0 24 24"><path d="M4 7h16M4 12h16M4 17h16" stroke="currentColor" /></svg>
      </button>
      <a href="home.html" class="text-xl font-bold">Fellside</a>
      <ul class="hidden lg:flex lg:gap-6">
        ${departments.map(({ title, href, parts }) => html`
          <li class="group">
            <button type="button" class="btn group-data-open:underline" aria-expanded="false" data-mega>${title}</button>
            <div class="mega max-lg:hidden">
              ${parts.map((part) => `<a href="listing.html?part=${slug(part)}" class="py-1">${part}</a>`)}
              <a href="${href}" class="hidden font-bold xl:block">All of ${title}</a>
              <a href="${href}/gifts" class="hidden 3xl:block">Gifts</a>
            </div>
          </li>`)}
      </ul>
      <form class="ms-auto hidden md:flex" role="search" action="listing.html">
        <label class="sr-only" for="search">Search products</label>
        <input id="search" name="q" type="search" placeholder="Search" class="peer w-48 rounded-md">
        <button type="reset" class="btn peer-placeholder-shown:hidden">Clear</button>
        <button class="btn sr-only peer-focus:not-sr-only">Search</button>
      </form>
      <a href="listing.html" class="md:hidden" aria-label="Search"><svg class="size-5" viewBox="0 0 20 20"><circle cx="9" cy="9" r="6" /></svg></a>
      <div class="relative hidden sm:block">
        <button type="button" class="btn" data-toggle="#account" aria-haspopup="menu" aria-expanded="false">Account</button>
        <div id="account" role="menu" class="absolute end-0 hidden w-48 flex-col bg-white shadow data-open:flex">
          <a role="menuitem" href="/account" class="px-4 py-2">Your orders</a>
          <a role="menuitem" href="/wishes" class="px-4 py-2">Wish list</a>
          <button role="menuitem" type="button" class="px-4 py-2 text-start">Sign out</button>
        </div>
      </div>
      <button type="button" class="btn" data-toggle="#cart" aria-expanded="false">Cart<span data-count class="empty:hidden"></span></button>
    </nav>
    <div id="menu" class="hidden border-t data-open:block lg:data-open:hidden">
      ${departments.map(({ title, parts, href }) => html`
        <details class="group open:bg-gray-50">
          <summary class="flex justify-between p-4">${title}<span class="group-open:rotate-180">⌄</span></summary>
          ${parts.map((part) => `<a class="block py-2 ps-8" href="listing.html?part=${slug(part)}">${part}</a>`)}
          <a class="hidden py-2 ps-8 group-open:block" href="${href}">All of ${title}</a>
        </details>`)}
      <a href="/account" class="block p-4 sm:hidden">Account</a>
      <button type="button" class="btn w-full" data-toggle="#menu">Close menu</button>
    </div>
  </header>`;

export const cart = html`
  <aside id="cart" class="drawer fixed inset-y-0 end-0 z-30 flex w-full max-w-md flex-col bg-white p-4" role="dialog" aria-label="Cart">
    <div class="flex justify-between"><h2>Your cart</h2><button type="button" data-toggle="#cart">Close cart</button></div>
    <ul data-lines class="peer/lines grow overflow-y-auto"></ul>
    <p class="hidden peer-empty/lines:block">Nothing in it yet. <a href="listing.html">Go and find something</a></p>
    <div class="flex flex-col gap-2 peer-empty/lines:hidden">
      <details class="group"><summary>Add a note</summary><textarea aria-label="Note" class="w-full not-group-open:hidden"></textarea></details>
      <a href="checkout.html" class="btn-primary justify-center">Check out</a>
      <button type="button" class="btn scripted:inline-flex hidden" data-clear>Empty the cart</button>
    </div>
  </aside>
  <template id="line">
    <li class="flex gap-2 py-2">
      <a href="product.html"></a>
      <input type="number" value="1" min="1" class="w-16" aria-label="Quantity">
      <button type="button" class="only:hidden">Edit</button>
      <button type="button" data-remove>Remove</button>
    </li>
  </template>`;

export const footer = html`
  <footer class="mt-16 grid gap-8 border-t p-8 sm:grid-cols-2 lg:grid-cols-4">
    ${["Help", "Company", "Follow us"].map((title) => html`
      <div class="group">
        <input type="checkbox" id="foot-${slug(title)}" class="peer sr-only sm:hidden">
        <label for="foot-${slug(title)}" class="block font-bold">${title}</label>
        <div class="hidden flex-col peer-checked:flex sm:flex">
          ${["About", "Jobs", "Contact"].map((word) => `<a href="/${slug(title)}/${slug(word)}">${title}: ${word}</a>`)}
        </div>
      </div>`)}
    <form class="flex gap-2" action="/letters">
      <input type="email" name="email" required aria-label="E-mail" class="peer grow">
      <button class="btn peer-invalid:opacity-40">Sign up</button>
      <p class="hidden peer-user-invalid:block">Please check it. <a href="/help">Help</a></p>
    </form>
    <button type="button" class="hidden motion-safe:inline-flex print:hidden">Back to top</button>
    <a href="/print" class="hidden print:block">Print view</a>
    <a href="/dark" class="hidden dark:inline">Light mode</a>
    <a href="/rtl" class="ltr:hidden">Mirror</a>
  </footer>`;

// The shop's script: toggles, the cart (in sessionStorage), tabs.
const script = `
  document.documentElement.classList.add("js");
  const $$ = (selector, root = document) => root.querySelectorAll(selector);
  const cart = JSON.parse(sessionStorage.cart ?? "[]");
  const names = ${JSON.stringify(Object.fromEntries(products.map((each) => [each.id, each.title])))};
  function draw() {
    sessionStorage.cart = JSON.stringify(cart);
    const list = document.querySelector("[data-lines]");
    if (!list) return;
    list.replaceChildren(...cart.map((id, i) => {
      const line = document.querySelector("#line").content.firstElementChild.cloneNode(true);
      line.querySelector("a").textContent = names[id];
      line.querySelector("[data-remove]").onclick = () => { cart.splice(i, 1); draw(); };
      return line;
    }));
    for (const count of $$("[data-count]")) count.textContent = cart.length || "";
  }
  function toggle(target, on = !target.hasAttribute("data-open")) {
    target.toggleAttribute("data-open", on);
    for (const button of $$("[aria-expanded][data-toggle='#" + target.id + "']")) button.setAttribute("aria-expanded", on);
  }
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button, a");
    if (!button) return;
    const { toggle: what, add, hide, tab, show, mega } = button.dataset;
    if (what) toggle(document.querySelector(what));
    if (add) { cart.push(add); draw(); toggle(document.querySelector("#cart"), true); }
    if (hide) document.querySelector(hide).hidden = true;
    if (show) document.querySelector(show).showModal();
    if (mega !== undefined) button.parentElement.toggleAttribute("data-open");
    if (button.matches("[data-clear]")) { cart.length = 0; draw(); }
    if (tab) for (const other of $$("[data-tab]")) {
      other.setAttribute("aria-selected", other === button);
      document.querySelector(other.dataset.tab).toggleAttribute("data-active", other === button);
    }
  });
  draw();`;

export const page = (title, main, { body = "", after = cart } = {}) => html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} – Fellside</title>
    <link rel="stylesheet" href="style.css">
  </head>
  <body class="${body}">
    ${header}
    <main id="main" class="mx-auto max-w-7xl p-4">${main}</main>
    ${footer}${after}
    <script>${script}</script>
  </body>
</html>`;
