// Asks the visitor questions on the shop's own pages: for consent, for the reason of an action, and for a persona.
//
// Each question is a small box at the foot of the page, with a class that rrweb does not record. The next press outside
// the box closes it, because an answer is about the last action.
(() => {
  const { settings, agreed, consent, note, isRecording } = window.ShopR1;
  if (!settings) return; // in a frame
  const WHY = "shop_r1.why"; // a key in sessionStorage while the question about an action is open

  const make = (tag, style, more = {}) => {
    const element = Object.assign(document.createElement(tag), more);
    element.style.cssText = style;
    return element;
  };

  /** Shows a box; `then` receives the written text, "" for a plain yes, or null for a no. */
  function ask(text, { field, yes, no, then, stays, closed }) {
    const box = make("div", "all: initial; color-scheme: light dark; position: fixed; z-index: 2147483647; right: 1rem; bottom: 1rem; left: 1rem; " +
      "max-width: 30rem; margin-left: auto; padding: 1rem; background: Canvas; color: CanvasText; border-radius: 12px; " +
      "box-shadow: 0 2px 24px #0005; font: 15px/1.45 system-ui, sans-serif;", { className: "rr-block" });
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", text);
    const form = make("form", "display: block; margin: 0");
    form.append(make("p", "margin: 0 0 .7rem", { textContent: text }));
    const answer = field && make("textarea", "display: block; width: 100%; box-sizing: border-box; font: inherit; " +
      "padding: .45rem .6rem; margin: 0 0 .7rem; border: 1px solid #9aa1ac; border-radius: 8px", { rows: 2, maxLength: 500 });
    answer?.setAttribute("aria-label", field);
    const button = (label, type, colours) => make("button", `font: inherit; font-weight: 600; padding: .4rem 1.1rem; ` +
      `margin-right: .6rem; border: 0; border-radius: 99px; cursor: pointer; ${colours}`, { textContent: label, type });
    const refuse = button(no, "button", "background: #8883; color: inherit");
    form.append(...[answer, button(yes, "submit", "background: #1f4fd8; color: #fff"), refuse].filter(Boolean));
    box.append(form);
    const end = () => (removeEventListener("pointerdown", beside, true), box.remove(), closed?.());
    const beside = (event) => stays || box.contains(event.target) || end();
    form.addEventListener("submit", (event) => (event.preventDefault(), end(), then(answer ? answer.value.trim() : "")));
    refuse.addEventListener("click", () => (end(), then(null)));
    addEventListener("pointerdown", beside, true);
    document.body.append(box);
  }

  function askConsent() {
    const text = settings.consentText || "May we record how you use this shop, for research? What you type stays hidden, except searches.";
    ask(text, { yes: "Yes, record", no: "No", stays: true, then: (given) => (consent(given !== null), given !== null && setTimeout(askPersona)) });
  }

  function askPersona() {
    if (settings.persona === undefined || localStorage.getItem("shop_r1.persona") !== null) return;
    const then = (text) => (localStorage.setItem("shop_r1.persona", text ?? ""), text && note("shop_r1.persona", { text }));
    ask(settings.persona || "How would you describe yourself as a shopper? (optional)", { field: "About you", yes: "Send", no: "Skip", then });
  }

  function askWhy() {
    if (!isRecording() || sessionStorage.getItem(WHY) === null) return;
    const then = (text) => text && note("shop_r1.rationale", { text });
    const closed = () => sessionStorage.removeItem(WHY); // not earlier, because the next page may be loading
    ask(settings.whyText || "Why did you do that? (optional)", { field: "Why", yes: "Send", no: "Skip", then, closed });
  }

  if (settings.why) {
    const notice = (event) => {
      if (!event.target.closest?.(settings.why) || event.target.closest(".rr-block")) return;
      sessionStorage.setItem(WHY, "");
      setTimeout(askWhy, 500); // if the next page loads first, it asks
    };
    addEventListener("click", notice, true);
    addEventListener("submit", notice, true);
  }
  if (agreed() === null) askConsent();
  else askPersona();
  askWhy();
})();
