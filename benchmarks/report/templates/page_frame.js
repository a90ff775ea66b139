"use strict";
// The page of a step with its marks, in a frame that may do nothing.
//
//     page_document (replay_sessions/simplify/page_view.py) -> parsed without being run -> marks set -> srcdoc of a sandboxed frame
//
// page_document has taken out whatever could act, and its own policy lets nothing load. The frame's sandbox allows nothing,
// and the policy of this report stands above both: a link or a form has nowhere to go.

const SCROLLED_TO = "shop-r1-first-mark";

// marks: [{name, logged, letters}]. Returns the document's text, and which of the names it has.
function markedDocument(page, marks, withNames) {
  const parsed = new DOMParser().parseFromString(page, "text/html");
  const named = new Map();
  for (const node of parsed.body.querySelectorAll("[name]")) {
    const name = node.getAttribute("name");
    if (!named.has(name) || (!named.get(name).dataset.acts && node.dataset.acts)) named.set(name, node);
  }
  if (withNames) for (const [name, node] of named) if (node.dataset.acts) tellName(parsed, node, name);
  parsed.getElementById(SCROLLED_TO)?.removeAttribute("id"); // the page's own
  const found = new Set();
  for (const mark of marks) {
    const node = named.get(mark.name);
    if (!node) continue;
    const marked = setMark(parsed, node, mark);
    if (!found.size) marked.before(scrollTarget(parsed)); // the log's comes first
    found.add(mark.name);
  }
  return { text: `<!DOCTYPE html>${parsed.documentElement.outerHTML}`, found };
}

// A mark's words are its label and choose its style (replay_sessions/page_view.css).
function setMark(parsed, node, mark) {
  let marked = node;
  if (node.matches("input, textarea")) { // fields can hold no label
    marked = parsed.createElement("span");
    node.replaceWith(marked);
    marked.append(node);
  }
  marked.dataset.mark = [mark.logged ? "logged" : "", mark.letters.length ? "chosen" : "", ...mark.letters].filter(Boolean).join(" ");
  return marked;
}

// The mark itself may be a button, and whoever is led to a button has the keyboard in it.
function scrollTarget(parsed) {
  const target = parsed.createElement("span");
  target.id = SCROLLED_TO;
  return target;
}

function tellName(parsed, node, name) {
  const told = parsed.createElement("small");
  told.textContent = ` ${name} `;
  if (node.matches("input, textarea")) node.after(told);
  else if (node.hasChildNodes()) node.append(told); // an empty one shows its name by itself
}

// A new frame each time: an old one would put every step into the browser's history.
function showDocument(place, text, title, scroll) {
  const frame = element("iframe", { class: "frame", sandbox: "", referrerpolicy: "no-referrer", title });
  frame.addEventListener("load", () => {
    if (scroll) frame.contentWindow.location.replace(`about:srcdoc#${SCROLLED_TO}`);
    frame.dataset.shown = "";
  }, { once: true });
  frame.srcdoc = text;
  place.replaceChildren(frame);
}
