import { html, price, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

const box = products[8];
export default page(box.title, html`
  <nav class="hidden text-sm sm:block"><a href="/">Home</a> / <a href="/garden">Garden</a></nav>
  <a href="/garden" class="sm:hidden">‹ Garden</a>
  <div class="md:flex">
    <div class="group md:w-1/2">
      <div class="relative">
        <img alt="${box.title}" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" width="400" height="300">
        <a href="#full" class="absolute bottom-2 right-2 opacity-0 transition group-hover:opacity-100">Enlarge</a>
      </div>
      <ul class="hidden md:flex">${[1, 2, 3, 4].map((number) => `<li><button class="h-16 w-16 border ${number === 4 ? "lg:hidden xl:block" : ""}" aria-label="View ${number}"></button></li>`)}</ul>
    </div>
    <form class="md:w-1/2">
      <h1>${box.title}</h1><s>${price(box.was)}</s> ${price(box.cents)}
      <a href="#reviews" class="group/stars">★★★★★ <span class="hidden group-hover/stars:inline">Read ${box.reviews} reviews</span></a>
      <fieldset><legend class="sr-only">Edition</legend>
        ${["Spring", "Autumn", "Herbs"].map((edition, i) => html`<input id="edition-${i}" type="radio" name="edition" class="peer/${i} hidden" ${i ? "" : "checked"}><label for="edition-${i}" class="border px-3">${edition}</label>`)}
        <div class="hidden peer-checked/0:block"><a href="/calendar/spring">Spring calendar</a></div><div class="hidden peer-checked/1:block"><a href="/calendar/autumn">Autumn calendar</a></div>
      </fieldset>
      <div class="flex"><button type="button" aria-label="Fewer">−</button><input value="1" size="2" aria-label="How many" class="[appearance:textfield]"><button type="button" aria-label="More">+</button></div>
      <button class="w-full bg-black py-3 text-white">Add to cart</button>
      <button type="button" class="invisible w-full md:visible">Pay with a wallet</button>
      <details class="group/details"><summary>Gift wrapping</summary><label><input type="checkbox"> Wrap it</label><button type="button" class="hidden group-open/details:block">See papers</button></details>
      <details open class="group/details"><summary>Delivery</summary><a href="/delivery" class="group-open/details:block hidden">Delivery times</a></details>
    </form>
  </div>
  <div class="mt-8">
    <label class="sm:hidden">Section <select><option>Description<option>Reviews</select></label>
    <div class="hidden sm:flex" role="tablist"><button role="tab" aria-selected="true">Description</button><button role="tab" aria-selected="false" class="aria-[selected=false]:text-gray-500">Reviews</button></div>
    <div role="tabpanel"><a href="/sowing">Sowing guide</a></div>
    <div role="tabpanel" class="hidden"><button>Write a review</button><a href="#1">Fine seeds</a></div>
  </div>
  <section class="mt-8 grid grid-cols-2 sm:grid-cols-4">${products.slice(3, 7).map(card)}</section>
  <div class="group fixed bottom-4 right-4"><button class="rounded-full">Help</button><div role="tooltip" class="absolute scale-0 group-hover:scale-100"><a href="/help">Help pages</a></div></div>
`);
