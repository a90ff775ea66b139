"use strict";
// The packed blocks (session_data.py): base64 -> deflate -> JSON, inflated when first asked for. No request is made for it.

const KEPT_PAGE_BLOCKS = 24; // what a long walk through sessions holds in memory
const inflated = new Map();

function block(name) {
  if (!inflated.has(name)) {
    inflated.set(name, inflate(name));
    const pages = [...inflated.keys()].filter((key) => key.startsWith("pages-"));
    if (pages.length > KEPT_PAGE_BLOCKS) inflated.delete(pages[0]);
  }
  return inflated.get(name);
}

async function inflate(name) {
  const text = document.getElementById(`block-${name}`).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// An element with attributes and children. Text only ever becomes text: nothing here reads HTML.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
