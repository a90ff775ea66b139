import { html, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

export default page("Home", html`
  <slideshow-component class="shopify-section"><div class="slideshow">${["Kettles", "Bottles"].map((word, i) => `<div class="slide" ${i ? 'aria-hidden="true" tabindex="-1"' : ""}><a href="/collections/${word}" ${i ? 'tabindex="-1"' : ""}>Shop ${word.toLowerCase()}</a></div>`)}</div><div class="slideshow__controls"><button aria-label="Previous slide">‹</button><button class="slideshow__autoplay" aria-label="Pause slideshow">‖</button><button aria-label="Next slide">›</button></div></slideshow-component>
  <slider-component><ul class="grid grid--peek list-unstyled" role="list">${products.map(card)}</ul><div class="slider-buttons no-js-hidden"><button class="slider-button" name="previous" aria-label="Slide left" disabled>‹</button><button class="slider-button" name="next" aria-label="Slide right">›</button></div><div class="slider-buttons no-slider"><button>Never</button></div></slider-component>
  <div class="center small-hide"><a href="/collections/all" class="button">View all</a></div><div class="large-up-hide"><a href="/collections/all" class="button">See all on your phone</a></div>
  <collapsible-content>${["Care", "Repairs"].map((word, i) => `<details ${i ? "" : "open"}><summary>${word}</summary><p>Text. <a href="/pages/${word}">All of ${word.toLowerCase()}</a></p></details>`)}</collapsible-content>
  <div id="shopify-pc__banner" role="alertdialog" aria-modal="true"><button id="accept">Accept</button><button id="decline">Decline</button><button>Manage preferences</button></div>
  <div id="shopify-pc__prefs" style="display:none"><label><input type="checkbox" disabled checked> Required</label><label><input type="checkbox"> Marketing</label><button>Save my choices</button></div>`);
