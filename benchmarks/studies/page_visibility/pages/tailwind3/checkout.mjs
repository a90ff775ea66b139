import { countries, html, price, products } from "../../shop.mjs";
import { page } from "./layout.mjs";

export const phone = true;
export const acts = [["#burger", "click"], ["#burger + nav button", "click"]];

const input = (label, name, classes = "") => `<div class="${classes}"><label for="${name}">${label}</label><input id="${name}" name="${name}" class="peer" placeholder=" "><button type="button" class="peer-placeholder-shown:hidden">Clear ${label.toLowerCase()}</button></div>`;

export default page("Checkout", html`
  <ol class="hidden md:flex">${["Cart", "Details", "Payment"].map((step) => `<li><a href="/checkout/${step.toLowerCase()}">${step}</a></li>`)}</ol>
  <p class="md:hidden">Step 2 of 3 <button>All steps</button></p>
  <form class="grid gap-4 sm:grid-cols-2">
    ${input("First name", "first")}${input("Last name", "last")}${input("Company", "company", "hidden sm:block")}${input("Street", "street", "sm:col-span-2")}
    <label>Country <select name="country">${countries.map((each) => `<option>${each}</option>`)}</select></label>
    <label class="flex"><input type="checkbox" name="other" class="peer"> Deliver elsewhere <a href="#elsewhere" class="peer-checked:inline hidden">Where to?</a></label>
    <fieldset class="space-y-2">${["Card", "Transfer", "Invoice"].map((way, i) => html`
      <label class="group block"><input type="radio" name="pay" value="${way}" class="peer" ${i === 0 ? "checked" : ""}> ${way}
        <span class="hidden peer-checked:block"><input aria-label="${way} number"><button type="button" class="peer-checked:hidden">Scan</button></span></label>`)}</fieldset>
    <label class="relative"><input type="checkbox" class="peer sr-only" role="switch" checked> News <span class="absolute peer-checked:translate-x-full"></span></label>
    <div class="col-span-full sticky bottom-0 sm:static"><button class="w-full">Pay ${price(9700)}</button></div>
  </form>
  <aside class="hidden lg:block">${products.slice(1, 3).map((each) => `<a href="/p/${each.id}">${each.title}</a><button class="hidden xl:inline">Remove</button>`)}<details><summary>Voucher</summary><input aria-label="Voucher code"><button>Use</button></details></aside>
`, { attributes: 'data-theme="night"' });
