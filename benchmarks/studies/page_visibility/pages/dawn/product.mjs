import { html, price, products } from "../../shop.mjs";
import { card, page } from "./layout.mjs";

const [kettle] = products;
export default page(kettle.title, html`
  <section class="product product--stacked"><media-gallery><a class="skip-to-content-link visually-hidden" href="#ProductInfo">Skip to product information</a>
    <ul class="product__media-list list-unstyled">${["front", "side", "lid"].map((view, i) => html`<li class="product__media-item ${i === 1 ? "is-active" : ""}"><modal-opener data-modal="#zoom"><button aria-haspopup="dialog" class="product__media-toggle">Open the ${view} in a window</button></modal-opener></li>`)}</ul>
    <slider-component class="thumbnail-slider">${["front", "side", "lid"].map((view) => `<button class="thumbnail" aria-label="Load the ${view}"></button>`)}</slider-component></media-gallery>
  <product-info id="ProductInfo"><h1>${kettle.title}</h1><a href="#reviews">Reviews</a> <div class="price">${price(kettle.cents)}</div>
    <variant-selects><fieldset class="product-form__input"><legend>Color</legend>${kettle.colors.map((color, i) => html`<input type="radio" name="Color" id="color-${i}" class="${i === 2 ? "disabled" : ""}" ${i ? "" : "checked"}><label for="color-${i}">${color}<span class="visually-hidden label-unavailable">Sold out <a href="#notify-${i}">Notify</a></span></label>`)}</fieldset>
      <div class="product-form__input product-form__input--dropdown"><label for="size">Size</label><div class="select"><select id="size"><option>1.2 l<option disabled>1.8 l</select></div></div></variant-selects>
    <quantity-input><button class="quantity__button disabled" name="minus">Decrease</button><input type="number" value="1" aria-label="Quantity"><button class="quantity__button" name="plus">Increase</button></quantity-input>
    <product-form><form><button type="submit" class="product-form__submit">Add to cart</button><button type="submit" class="shopify-payment-button">Buy it now</button><button class="shopify-payment-button__more-options" aria-hidden="true" disabled>More payment options</button></form></product-form>
    <pickup-availability><button class="link underlined-link">View store information</button></pickup-availability><share-button><details><summary>Share</summary><div><label for="url">Link</label><input id="url" value="https://example.com/p"><button class="share-button__close hidden no-js-hidden">Close share</button><button class="share-button__copy">Copy</button></div></details></share-button>
    ${["Materials", "Shipping"].map((word) => `<div class="product__accordion accordion"><details><summary>${word}</summary><div class="accordion__content"><a href="/pages/${word}">${word} in full</a></div></details></div>`)}<a href="/products/x" class="product__view-details">View full details</a></product-info></section>
  <product-modal id="zoom" class="product-media-modal"><div role="dialog"><button aria-label="Close the picture">×</button></div></product-modal>
  <modal-dialog id="sizes" open><div role="dialog"><button aria-label="Close the sizes">×</button><a href="/sizes.pdf">Print sizes</a></div></modal-dialog>
  <product-recommendations><ul class="grid grid--peek">${products.slice(5, 11).map(card)}</ul></product-recommendations>
  <sticky-bar><button>Add to cart from the bar</button><button class="always">Chat</button></sticky-bar>`, { cart: "is-empty", root: "no-js" });
