// The list of what can be acted on: searchable, and to be walked with the arrows.

const MOST_LISTED = 150; // more at once helps nobody, and searching finds the rest

export class Choices {
  #search; #list; #more; #onPick;
  #elements = [];
  #listed = [];
  #active = -1;
  #picked = null;

  constructor(find, onPick) {
    [this.#search, this.#list, this.#more] = ["search", "list", "more"].map(find);
    this.#onPick = onPick;
    this.#search.addEventListener("input", () => this.#render());
    this.#search.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (item) this.#onPick(this.#listed[Number(item.dataset.index)].name);
    });
  }

  show(elements) {
    this.#elements = elements.map((element) => ({ ...element, words: `${element.label} ${element.name}`.toLowerCase() }));
    this.#search.value = "";
    this.#picked = null;
    this.#render();
  }

  // Marks what was picked.
  pick(name) {
    this.#picked = name;
    for (const item of this.#list.children) {
      item.setAttribute("aria-selected", String(this.#listed[Number(item.dataset.index)].name === name));
    }
  }

  // What stands at a place in the list, counted from 1.
  at(place) {
    return this.#listed[place - 1]?.name ?? null;
  }

  #render() {
    const wanted = this.#search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fitting = this.#elements.filter(({ words }) => wanted.every((word) => words.includes(word)));
    this.#listed = fitting.slice(0, MOST_LISTED);
    this.#list.replaceChildren(...this.#listed.map((element, index) => item(element, index)));
    this.#list.scrollTop = 0;
    this.#more.textContent = remark(this.#elements.length, fitting.length);
    this.#activate(wanted.length && this.#listed.length ? 0 : -1);
    this.pick(this.#picked);
  }

  #activate(index) {
    this.#list.children[this.#active]?.classList.remove("active");
    this.#active = index;
    const item = this.#list.children[index];
    if (item) {
      item.classList.add("active");
      item.scrollIntoView({ block: "nearest" });
      this.#search.setAttribute("aria-activedescendant", item.id);
    } else {
      this.#search.removeAttribute("aria-activedescendant");
    }
  }

  #key(event) {
    const last = this.#listed.length - 1;
    if (event.key === "ArrowDown") this.#activate(Math.min(this.#active + 1, last));
    else if (event.key === "ArrowUp") this.#activate(Math.max(this.#active - 1, 0));
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && this.#listed[this.#active]) {
      this.#onPick(this.#listed[this.#active].name);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function item(element, index) {
  const [row, number, label, name] = ["li", "b", "span", "small"].map((tag) => document.createElement(tag));
  row.id = `choice-${index}`;
  row.dataset.index = index;
  row.setAttribute("role", "option");
  number.textContent = index < 9 ? index + 1 : "";
  number.ariaHidden = "true";
  label.textContent = (element.accepts === "type" ? "✎ " : "") + element.label;
  name.textContent = inWords(element.name);
  row.title = element.name;
  row.append(number, label, name);
  return row;
}

// A name as people read it: search_results.red_kettle.view -> search results › red kettle › view.
export function inWords(name) {
  return name.replaceAll("_", " ").split(".").join(" › ");
}

// Elements with labels that tell them apart: the product that they are in, and their text.
export function labelled(elements) {
  const titles = new Map(); // the names of cards and the like -> the longest text in each
  const around = (name) => name.split(".").slice(0, -1).join(".");
  const counts = new Map();
  for (const { name, text } of elements) {
    counts.set(text, (counts.get(text) ?? 0) + 1);
    if (text.length > (titles.get(around(name)) ?? "").length) titles.set(around(name), text);
  }
  return elements.map((element) => {
    const parts = element.name.split(".");
    const [place, last] = [parts.at(-2), parts.at(-1)].map((part) => inWords(part ?? ""));
    if (element.accepts === "type") return { ...element, label: last };
    if (parts.length < 3 || (element.text && counts.get(element.text) === 1)) return { ...element, label: element.text || last };
    const title = titles.get(around(element.name));
    const product = title && counts.get(title) === 1 ? title : place;
    const own = element.text && element.text !== product ? element.text : last;
    return { ...element, label: `${product} – ${own}` };
  });
}

function remark(all, fitting) {
  if (all === 0) return "Nothing on this page can be acted on.";
  if (fitting === 0) return "Nothing fits.";
  if (fitting > MOST_LISTED) return `${fitting - MOST_LISTED} more: search for them.`;
  return "";
}
