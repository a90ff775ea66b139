// A wish list of Tailwind's arbitrary variants, important modifiers, popovers and inert parts.
import { html, price, products } from "../../shop.mjs";
import { page } from "./layout.mjs";

export default page("Wish list", html`
  <div class="hidden! sm:block" id="never"><button>Old share button</button></div>
  <div class="flex gap-2 [@media(width<600px)]:hidden [@supports(display:grid)]:flex"><button>Share the list</button><button popovertarget="more">More</button></div>
  <div id="more" popover class="rounded p-2"><button>Rename</button><button>Delete the list</button></div>
  <div id="tip" popover="hint" class="flex"><a href="/tips">A tip that Tailwind's flex shows</a></div>
  <table class="w-full [&_td:nth-child(2)]:hidden sm:[&_td:nth-child(2)]:table-cell">
    ${products.slice(0, 8).map((each, i) => html`
      <tr class="group ${i > 5 ? "collapse" : ""} ${i === 7 ? "sm:visible" : ""}" data-state="${i % 2 ? "sold" : "there"}">
        <td><a href="product.html">${each.title}</a></td>
        <td><a href="/brands/${each.brand.split(" ")[0]}">${each.brand}</a> ${price(each.cents)}</td>
        <td><button class="group-data-[state=sold]:hidden" data-add="${each.id}">Add</button><button class="hidden group-data-[state=sold]:inline">Notify me</button>
          <button class="opacity-0 group-hover:opacity-100 focus:opacity-100">Note</button></td>
      </tr>`)}
  </table>
  <div inert class="opacity-50"><button>Move all</button><select aria-label="List"><option>Gifts</select></div>
  <div aria-hidden="true"><button tabindex="-1">Seen, though hidden from readers</button></div>
  <div class="contents"><a href="/lists">All lists</a></div>
  <div class="invisible"><a href="/old">Old lists</a><a href="/older" class="visible">Older lists</a><div class="md:visible"><button>Restore on wide screens</button></div></div>
  <div class="h-0 overflow-hidden"><a href="/clipped">Clipped</a></div>
  <div class="hidden [&:has(~section_:checked)]:block"><button>Compare chosen</button></div>
  <section><label><input type="checkbox" checked> Choose the first</label><label><input type="checkbox" class="checked:hidden"> Choose the second</label></section>
  <div class="hidden [.js_&]:block"><button>Scripted only</button></div>
  <noscript><a href="/plain">Plain version</a></noscript>
  <div class="w-1/2 2xl:hidden"><a href="/small">Smaller than 2xl</a></div><div class="hidden min-[900px]:max-[1300px]:block"><a href="/between">Between</a></div>
  <div class="hidden landscape:max-lg:block portrait:block"><a href="/portrait">Portrait</a></div>`);
