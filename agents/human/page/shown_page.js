// The page as the shopper saw it, in a frame under a pane of glass.
//
// The frame's sandbox runs no script and follows no link; `allow-same-origin` only lets this file read where things lie.
// Nobody touches what is in it: the glass in front takes every click and tap, and the element beneath is looked up in the
// frame. So nothing in a page can be focused, submitted or dragged, and browsers that run no listeners in such a frame
// (Safari) do as well as others. The frame is as tall as its content, so that it never scrolls by itself.

import { inWords } from "./choices.js";

export class ShownPage {
  #frame; #glass; #sheet; #scroll; #pointed; #picked; #hint;
  #elements = new Map(); // name -> its element in the frame
  #name = null;

  constructor(find, onPick) {
    [this.#frame, this.#glass, this.#sheet, this.#scroll] = ["frame", "glass", "sheet", "scroll"].map(find);
    [this.#pointed, this.#picked, this.#hint] = ["pointed", "picked", "hint"].map(find);
    this.#glass.addEventListener("pointermove", (event) => this.#point(this.#at(event)));
    this.#glass.addEventListener("pointerleave", () => this.#point(null));
    this.#glass.addEventListener("click", (event) => {
      const name = this.#at(event);
      if (name !== null) onPick(name);
    });
    new ResizeObserver(() => this.#fit()).observe(this.#scroll);
  }

  // Shows a document of replay_sessions/simplify/page_view.py.
  async show(page) {
    const loaded = new Promise((resolve) => this.#frame.addEventListener("load", resolve, { once: true }));
    this.#frame.srcdoc = page;
    await loaded;
    this.#elements.clear();
    for (const element of this.#frame.contentDocument.querySelectorAll("[data-acts]")) {
      const name = element.getAttribute("name");
      if (!this.#elements.has(name)) this.#elements.set(name, element);
    }
    this.#scroll.scrollTo({ top: 0, behavior: "instant" });
    this.pick(null);
    this.#point(null);
    this.#fit();
  }

  // Frames an element; `bring` scrolls to it.
  pick(name, { bring = false } = {}) {
    this.#name = name;
    const box = this.#place(this.#picked, this.#elements.get(name));
    if (bring && box) {
      const { top, bottom, height } = box;
      const view = this.#scroll;
      if (top < view.scrollTop || bottom > view.scrollTop + view.clientHeight) {
        view.scrollTo({ top: Math.max(0, top - (view.clientHeight - height) / 2) });
      }
    }
  }

  #at(event) {
    const around = this.#glass.getBoundingClientRect();
    const [x, y] = [event.clientX - around.left, event.clientY - around.top];
    const element = this.#frame.contentDocument?.elementFromPoint(x, y)?.closest("[data-acts]");
    return element ? element.getAttribute("name") : null;
  }

  #point(name) {
    this.#place(this.#pointed, this.#elements.get(name));
    this.#glass.classList.toggle("over", name !== null);
    this.#hint.textContent = inWords(name ?? "");
    this.#hint.hidden = name === null;
  }

  #place(box, element) {
    box.hidden = !element;
    if (!element) return null;
    const place = element.getBoundingClientRect();
    for (const side of ["left", "top", "width", "height"]) box.style[side] = `${place[side]}px`;
    return place;
  }

  #fit() {
    const root = this.#frame.contentDocument?.documentElement;
    if (!root) return;
    this.#sheet.style.height = "1px"; // so that the content, not the frame, says how tall it is
    this.#sheet.style.height = `${Math.max(root.offsetHeight + 1, this.#scroll.clientHeight)}px`;
    this.pick(this.#name);
    this.#point(null);
  }
}
