// One person's predictions: shows the step that is next, takes one action, sends it, and goes on.
//
//   GET step ─► shopper, page, list ─► a choice ─► POST prediction ─► acknowledged: it is on the disk ─► GET step
//
// All text is set as text, never as HTML; the page itself goes into the sandboxed frame only (shown_page.js).

import { Choices, withBreaks } from "./choices.js";
import { ShownPage } from "./shown_page.js";

const find = (id) => document.getElementById(id);
const LEAVE = Symbol("leave");
let step = null; // as the server sent it
let choice = null; // the name of an element, LEAVE, or null
let isSending = false;

const shownPage = new ShownPage(find, (name) => choose(name));
const choices = new Choices(find, (name) => choose(name, { bring: true }));

async function next() {
  find("work").inert = true; // nothing can be chosen until page and list are those of one step
  let view;
  try {
    view = await ask("step");
  } catch (error) {
    return tell("The program does not answer", `${error.message}\n\nWhat was acknowledged is recorded.`, "Try again", next);
  }
  if (view.done) {
    find("progress").textContent = "";
    return tell("Everything is answered. Thank you!", `${count(view.answered)} recorded as ${view.person}. You can close this window.`);
  }
  step = view;
  find("message").hidden = true;
  find("work").hidden = find("tabs").hidden = false;
  find("progress").replaceChildren(
    make("span", `${view.person} · `, "wide"), `session ${view.session} of ${view.sessions} · step ${view.step}`,
    make("span", ` · ${count(view.answered)} answered`, "wide"),
  );
  find("goal").textContent = view.goal || "not known";
  find("persona").textContent = view.persona || "not known";
  showHistory(view.history);
  find("rationale").value = find("text").value = "";
  find("why").open = false;
  document.querySelector('[name="how"][value="type"]').checked = true;
  choices.show(view.elements);
  showTab("page");
  await shownPage.show(view.page);
  find("work").inert = false;
  choose(null);
  find("scroll").focus({ preventScroll: true });
}

function showHistory(history) {
  const rows = history.map((past, index) => {
    const row = make("li");
    const said = `${index + 1}. ${inWords(past.action)}`;
    if (past.has_page) {
      const button = make("button", said);
      button.type = "button";
      button.title = "Look at this page";
      button.addEventListener("click", () => showPast(index, said));
      row.append(button);
    } else row.append(said);
    if (past.rationale) row.append(make("q", past.rationale));
    return row;
  });
  find("history").replaceChildren(...(rows.length ? rows : [make("li", "Nothing yet: this is the first page.")]));
  find("shopper").scrollTop = 0;
}

async function showPast(index, said) {
  try {
    const { page } = await ask(`past/${index}`);
    find("past").querySelector("h2").textContent = said;
    const frame = find("past").querySelector("iframe");
    frame.onload = () => frame.contentDocument?.querySelector("[data-mark]")?.scrollIntoView({ block: "center" });
    frame.srcdoc = page;
    find("past").showModal();
  } catch (error) {
    complain(error.message);
  }
}

function choose(name, { bring = false } = {}) {
  choice = name;
  const element = step.elements.find((one) => one.name === name);
  const accepts = element?.accepts;
  shownPage.pick(element ? name : null, { bring });
  choices.pick(element ? name : null);
  find("leave").setAttribute("aria-pressed", String(name === LEAVE));
  find("how").hidden = accepts !== "type";
  complain("");
  showChoice();
  if (name === null) return;
  if (isTyped()) find("text").focus();
  else find("submit").focus();
}

function showChoice() {
  const element = step.elements.find((one) => one.name === choice);
  const said = find("chosen");
  find("text-label").hidden = !isTyped();
  if (choice === LEAVE) said.replaceChildren("The shopper leaves without buying.");
  else if (!element) said.replaceChildren(make("span", "Choose on the page or in the list.", "quiet"));
  else {
    const name = make("small");
    name.append(...withBreaks(element.name));
    const clicked = ["The shopper clicks ", make("strong", element.text || "an element without a label")];
    said.replaceChildren(...(element.accepts === "type" ? ["The shopper uses a field"] : clicked), name);
  }
  find("submit").disabled = isSending || !action();
}

function isTyped() {
  const element = step.elements.find((one) => one.name === choice);
  return element?.accepts === "type" && document.querySelector('[name="how"]:checked').value === "type";
}

// What would be submitted; null: nothing yet.
function action() {
  if (choice === LEAVE) return { type: "terminate" };
  if (choice === null) return null;
  if (!isTyped()) return { type: "click", name: choice };
  const text = find("text").value.trim();
  return text ? { type: "type_and_submit", name: choice, text } : null;
}

async function submit() {
  const predicted = action();
  if (!predicted || isSending) return;
  isSending = true;
  showChoice();
  complain("");
  try {
    const told = await ask("prediction", { number: step.number, action: predicted, rationale: find("rationale").value.trim() });
    isSending = false;
    if (told.answer) {
      tell(
        told.is_exact ? "Just so." : "The shopper did something else.",
        `You: ${inWords(predicted)}\nThe shopper: ${inWords(told.answer)}`, "Go on", next,
      );
    } else await next();
  } catch (error) {
    isSending = false;
    if (error.status === 409) return next(); // answered already, in another window
    complain(error.status ? error.message : `${error.message} Submit again.`); // the same again is recorded once
    showChoice();
  }
}

async function ask(path, body) {
  let response;
  try {
    response = await fetch(path, body && {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
  } catch {
    throw new Error("No answer. Does the program still run? A new start prints a new address.");
  }
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status });
  return answer;
}

// A message in the place of the step.
function tell(title, text, button = null, act = null) {
  find("work").hidden = find("tabs").hidden = true;
  const [heading, words, go] = find("message").children;
  heading.textContent = title;
  words.textContent = text;
  go.hidden = !button;
  go.textContent = button ?? "";
  go.onclick = act;
  find("message").hidden = false;
  (button ? go : find("message")).focus();
}

function complain(text) {
  find("problem").hidden = !text;
  find("problem").textContent = text;
}

function inWords(done) {
  if (done.type === "click") return `clicked ${done.name}`;
  if (done.type === "type_and_submit") return `typed “${done.text}” into ${done.name}`;
  return "left without buying";
}

function make(tag, text = "", name = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = name;
  return made;
}

function count(steps) {
  return steps === 1 ? "1 step" : `${steps} steps`;
}

function showTab(tab) {
  document.body.dataset.tab = tab;
  for (const button of find("tabs").children) button.setAttribute("aria-pressed", String(button.dataset.tab === tab));
}

function key(event) {
  if (find("work").hidden || find("work").inert || find("past").open || event.altKey) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return void submit();
  if (event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape") {
    choose(null);
    return find("search").focus();
  }
  if (event.target.matches('input:not([type="radio"]), textarea')) return;
  const named = /^[1-9]$/.test(event.key) ? choices.at(Number(event.key)) : null;
  if (event.key === "/") find("search").focus();
  else if (event.key === "0") choose(LEAVE);
  else if (named !== null) choose(named, { bring: true });
  else return;
  event.preventDefault();
}

find("prediction").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
find("text").addEventListener("input", showChoice);
for (const radio of document.querySelectorAll('[name="how"]')) {
  radio.addEventListener("change", () => {
    showChoice();
    if (isTyped()) find("text").focus();
  });
}
find("leave").addEventListener("click", () => choose(LEAVE));
find("past-close").addEventListener("click", () => find("past").close());
find("tabs").addEventListener("click", (event) => event.target.dataset.tab && showTab(event.target.dataset.tab));
document.addEventListener("keydown", key);
next();
