import { html, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

export default page("Home", html`
  <section class="grid lg:grid-cols-2">
    <div><h1>Sow now</h1><a href="/garden" class="inline-block bg-black px-6 py-3 text-white">Garden shop</a> <a href="/almanac" class="hidden sm:inline-block lg:hidden xl:inline-block">Almanac</a></div>
    <div class="hidden lg:block"><a href="/seeds">Seeds by month</a></div>
  </section>
  <section class="relative mt-8">
    <div class="scroll-hint"><button>Swipe for more</button></div>
    <div class="flex gap-4 overflow-x-scroll">${products.slice(0, 8).map((each) => `<div class="w-56 flex-none">${card(each)}</div>`)}</div>
    <button class="absolute left-0 top-1/2 hidden disabled:!hidden md:block" disabled aria-label="Back">‹</button>
    <button class="absolute right-0 top-1/2 hidden disabled:!hidden md:block" aria-label="On">›</button>
  </section>
  <section class="mt-8 columns-1 sm:columns-2 [&>*:nth-child(even)]:hidden sm:[&>*:nth-child(even)]:block">
    ${["Kettles", "Aprons", "Boards", "Lamps", "Throws", "Boxes"].map((word) => `<a class="block" href="/find/${word}">${word}</a>`)}
  </section>
  <div x-cloak x-show="promo" class="fixed inset-0 flex"><div class="m-auto"><p>10% off your first order</p><input type="email" aria-label="E-mail for 10%"><button>Send my code</button><button>No, thank you</button></div></div>
  <div class="fixed bottom-0 inset-x-0 bg-white translate-y-0" role="dialog" aria-label="Cookie settings"><button>Accept all</button><button>Reject all</button><a href="/privacy">Privacy</a></div>
  <div class="sheet" aria-hidden="true"><h2>Help</h2><a href="/chat">Chat with us</a><button>Close help</button></div>
`);
