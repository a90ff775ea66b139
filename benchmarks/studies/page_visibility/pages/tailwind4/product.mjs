import { html, price, products, slug } from "../../shop.mjs";
import { page, productCard } from "./layout.mjs";

const [shell] = products.filter((each) => each.id === "rain-shell");
const TABS = { Details: "Three layers, taped seams.", Care: "Wash at 30 °C.", Delivery: "Two to three days." };

export default page(shell.title, html`
  <div class="grid gap-8 md:grid-cols-2">
    <section aria-label="Pictures">
      <div class="group relative">
        ${["front", "back", "hood"].map((view, i) => html`
          <input type="radio" name="picture" id="picture-${i}" class="peer/${view} sr-only" ${i ? "" : "checked"} aria-label="Show the ${view}">`)}
        <a href="#zoom-front" class="hidden peer-checked/front:block">Zoom the front</a>
        <a href="#zoom-back" class="hidden peer-checked/back:block">Zoom the back</a>
        <a href="#zoom-hood" class="hidden peer-checked/hood:block">Zoom the hood</a>
        <button type="button" class="absolute end-0 top-0 opacity-0 group-hover:opacity-100" data-show="#zoom">Full screen</button>
      </div>
      <div class="mt-2 flex gap-2 max-md:hidden">${["front", "back", "hood"].map((view) => `<button type="button" class="size-16 border aria-pressed:border-black" aria-label="The ${view}"></button>`)}</div>
      <div class="mt-2 flex gap-2 md:hidden">${[1, 2, 3].map((number) => `<button type="button" class="size-2 rounded-full" aria-label="Picture ${number}"></button>`)}</div>
    </section>
    <form class="flex flex-col gap-4" onsubmit="return false">
      <h1>${shell.title}</h1><p>${price(shell.cents)}</p>
      <fieldset class="group"><legend>Color</legend>
        ${shell.colors.map((color, i) => html`<label class="has-checked:ring-2"><input type="radio" name="color" value="${color}" class="peer sr-only" ${i ? "" : "checked"}> ${color} <a href="#${slug(color)}" class="hidden peer-checked:inline">about it</a></label>`)}
      </fieldset>
      <fieldset><legend>Size</legend>
        ${shell.sizes.map((size, i) => html`<label class="inline-block has-disabled:line-through"><input type="radio" name="size" value="${size}" class="peer" ${i === 4 ? "disabled" : ""}> ${size} <button type="button" class="hidden peer-disabled:inline" data-show="#notify">Tell me</button></label>`)}
        <button type="button" class="underline" data-show="#size-guide">Size guide</button>
      </fieldset>
      <label class="flex gap-2"><input type="checkbox" class="peer" name="gift"> It is a gift</label>
      <div class="grid grid-rows-[0fr] transition-[grid-template-rows] [form:has([name=gift]:checked)_&]:grid-rows-[1fr]"><div class="overflow-hidden"><textarea name="words" aria-label="Your words"></textarea></div></div>
      <button type="button" class="btn-primary" data-add="${shell.id}">Add to cart</button>
      <button type="button" class="btn hidden sm:inline-flex" disabled>Buy now</button>
      <button type="button" class="btn sm:hidden">Buy now, phone pay</button>
    </form>
  </div>
  <div role="tablist" class="mt-8 hidden gap-4 sm:flex">
    ${Object.keys(TABS).map((title, i) => `<button type="button" role="tab" data-tab="#tab-${slug(title)}" aria-selected="${!i}" class="btn aria-selected:border-b-2">${title}</button>`)}
  </div>
  ${Object.entries(TABS).map(([title, text], i) => html`
    <section id="tab-${slug(title)}" role="tabpanel" class="sm:hidden sm:data-active:block" ${i ? "" : "data-active"}>
      <h3 class="sm:hidden">${title}</h3><p>${text}</p><a href="/help/${slug(title)}">More about ${title.toLowerCase()}</a>
    </section>`)}
  <section class="mt-8"><h2>Goes well with it</h2>
    <ul class="flex gap-4 overflow-x-auto *:min-w-48 *:odd:max-md:hidden">${products.slice(0, 6).map(productCard)}</ul>
  </section>
  <div class="fixed inset-x-0 bottom-0 flex justify-between bg-white p-2 md:hidden"><a href="#main">${shell.title}</a><button type="button" class="btn-primary" data-add="${shell.id}">Add</button></div>
  <dialog id="size-guide" class="m-auto backdrop:bg-black/50 open:flex open:flex-col"><h2>Sizes</h2><label>Chest <input type="number" name="chest"></label><button type="button">Find my size</button><form method="dialog"><button>Close the guide</button></form></dialog>
  <dialog id="zoom" class="m-auto"><button type="button">Next picture</button><form method="dialog"><button>Close</button></form></dialog>
  <dialog id="notify" class="m-auto hidden open:block"><input type="email" aria-label="E-mail for news"><button type="button">Tell me when it is back</button></dialog>`);
