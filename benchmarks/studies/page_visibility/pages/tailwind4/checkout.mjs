import { countries, html, price, products } from "../../shop.mjs";
import { page } from "./layout.mjs";

const STEPS = ["Contact", "Delivery", "Payment", "Review"];
const field = (label, name, type = "text", more = "") => html`
  <label class="group block"><span class="block">${label}</span><input name="${name}" type="${type}" class="peer w-full invalid:border-red-500" ${more}>
    <button type="button" class="hidden peer-[[type=password]]:inline">Show</button></label>`;

export default page("Checkout", html`
  <ol class="flex gap-4 max-sm:[&>li:not([aria-current])]:hidden">
    ${STEPS.map((step, i) => `<li ${i === 1 ? "aria-current=step" : ""}><a href="?step=${i}" class="${i > 1 ? "pointer-events-none" : ""}">${step}</a></li>`)}
  </ol>
  <div class="grid gap-8 lg:grid-cols-[1fr_24rem]">
    <form class="group/form flex flex-col gap-4">
      <section data-done class="group"><h2>Contact</h2><p class="hidden group-data-done:block">You sign in later. <button type="button">Change contact</button></p>
        <div class="group-data-done:hidden">${field("E-mail", "mail", "email")}${field("Password", "password", "password")}<button type="button">Continue</button></div></section>
      <section class="group"><h2>Delivery</h2>
        <fieldset class="flex flex-col"><legend class="sr-only">How</legend>
          <label><input type="radio" name="way" value="home" class="peer/home" checked> To your door</label>
          <label><input type="radio" name="way" value="shop" class="peer/shop"> To a shop</label>
        </fieldset>
        <div class="group-has-[[value=shop]:checked]:hidden">
          ${field("First name", "first", "text", "autocomplete=given-name")}${field("Last name", "last")}${field("Street", "street")}
          <div class="grid grid-cols-2 gap-4">${field("Postcode", "postcode", "text", "inputmode=numeric")}${field("City", "city")}</div>
          <label>Country <select name="country">${countries.map((each) => `<option>${each}`)}</select></label>
          <button type="button" class="invisible group-hover:visible">Fill in from last time</button>
        </div>
        <div class="hidden group-has-[[value=shop]:checked]:block"><input type="search" aria-label="Find a shop"><button type="button">Use my position</button></div>
        <label><input type="checkbox" name="same" checked class="peer"> Bill the same address</label>
        <fieldset class="hidden in-[form:has([name=same]:not(:checked))]:block"><legend>Billing</legend>${field("Street of the bill", "bill")}</fieldset>
        <button type="button" class="btn-primary">To payment</button>
      </section>
      <section class="group not-data-active:*:not-first:hidden"><h2>Payment</h2>${field("Card number", "card", "text", "autocomplete=cc-number")}${field("Expires", "until")}<button>Pay</button></section>
    </form>
    <aside>
      <details class="group lg:hidden"><summary>Order summary</summary>${products.slice(0, 2).map((each) => `<a href="product.html" class="block">${each.title} ${price(each.cents)}</a>`)}</details>
      <div class="hidden lg:block">
        ${products.slice(0, 2).map((each) => html`<div class="group flex"><a href="product.html">${each.title}</a><button type="button" class="collapse group-first:visible">Remove ${each.title}</button></div>`)}
        <input name="voucher" aria-label="Voucher" placeholder="Voucher" class="peer"><button type="button" class="peer-placeholder-shown:pointer-events-none">Apply</button>
      </div>
      <div class="hidden has-[input[name=voucher]:not(:placeholder-shown)]:block lg:inert:hidden" inert><button type="button">Undo voucher</button></div>
    </aside>
  </div>`, { after: "" });
