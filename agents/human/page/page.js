// One person's predictions: shows the step that is next, takes one action, sends it, and goes on.
//
//   GET step ─► the introduction ─► POST consent ─► two practice steps, in the same way as the others
//   GET step ─► shopper, page, list ─► a choice ─► POST prediction ─► acknowledged: it is on the disk ─► GET step
//
// All text is set as text, never as HTML; the page itself goes into the sandboxed frame only (shown_page.js).

import { Choices, inWords, labelled } from "./choices.js";
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
    return tell("The program does not answer", `${error.message}\n\nWhat was acknowledged is recorded.`, ["Try again", next]);
  }
  showProgress(view);
  if (view.consent) {
    return tell(`Welcome, ${view.person}`, view.consent, ["I agree", () => consent(true)], ["I do not take part", () => consent(false)]);
  }
  if (view.done) return tell(`Thank you, ${view.person}!`, result(view));
  step = { ...view, elements: labelled(view.elements) };
  find("message").hidden = true;
  find("work").hidden = find("tabs").hidden = false;
  find("finality").textContent = view.practice ? "practice: not recorded" : "cannot be taken back";
  find("goal").textContent = view.goal || "not known";
  find("persona").textContent = view.persona || "not known";
  showHistory(view.history);
  find("rationale").value = find("text").value = "";
  find("why").open = false;
  document.querySelector('[name="how"][value="type"]').checked = true;
  choices.show(step.elements);
  showTab("page");
  await shownPage.show(view.page);
  find("work").inert = false;
  choose(null);
  find("scroll").focus({ preventScroll: true });
}

async function consent(agrees) {
  try {
    await ask("consent", { agrees });
  } catch (error) {
    return tell("That was not recorded", error.message, ["Try again", next]);
  }
  if (agrees) return next();
  tell("That is fine", "No answer was recorded. Thank you for your time; you can close this window.");
}

// Sessions are counted and steps are not: their number would say when a shopper leaves.
function showProgress({ person, practice, practice_steps, session, sessions, step, answered, done }) {
  find("done").hidden = !session && !done;
  [find("done").max, find("done").value] = [sessions ?? 1, done ? sessions : (session ?? 1) - 1];
  if (practice) find("progress").textContent = `Practice ${practice} of ${practice_steps}`;
  else if (session) {
    find("progress").replaceChildren(
      make("span", `${person} · `, "wide"), `Session ${session} of ${sessions} · step ${step}`,
      make("span", ` · ${count(answered)} answered`, "wide"),
    );
  } else find("progress").textContent = "";
}

function result({ answered, sessions, exact, same_type, minutes }) {
  const share = (part) => `${part} of ${answered} (${Math.round((100 * part) / answered)}%)`;
  return [
    `All ${count(answered)} of ${sessions === 1 ? "1 session" : `${sessions} sessions`} are answered, in about ${Math.ceil(minutes) || 1} min.`, "",
    `The same action as the shopper: ${share(exact)}`, `The same kind of action: ${share(same_type)}`, "",
    "Shoppers are hard to predict: nobody gets all of them right. You can close this window.",
  ].join("\n");
}

function showHistory(history) {
  const rows = history.map((past, index) => {
    const row = make("li");
    const said = `${index + 1}. ${acted(past.action)}`;
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
  else if (!element) {
    said.replaceChildren(make("span", `Goal: ${step.goal || "not known"}`, "narrow"), make("span", "Choose on the page or in the list.", "quiet"));
  }
  else {
    said.replaceChildren(`The shopper ${element.accepts === "type" ? "uses the field" : "clicks"} `, make("strong", element.label));
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
        told.is_exact ? "The shopper did the same." : "The shopper did something else.",
        `You ${acted(predicted, step.elements)}.\nThe shopper ${acted(told.answer, step.elements)}.${told.why ? `\n\n${told.why}` : ""}`, ["Go on", next],
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

// A message in the place of the step, with buttons: the label of each, and what it does.
function tell(title, text, ...buttons) {
  find("work").hidden = find("tabs").hidden = true;
  const [heading, words, row] = find("message").children;
  heading.textContent = title;
  words.textContent = text;
  row.replaceChildren(...buttons.map(([label, act]) => {
    const button = make("button", label);
    button.type = "button";
    button.onclick = act;
    return button;
  }));
  find("message").hidden = false;
  (buttons.length === 1 ? row.firstChild : find("message")).focus({ preventScroll: true });
}

function complain(text) {
  find("problem").hidden = !text;
  find("problem").textContent = text;
}

function acted(done, elements = []) {
  const name = elements.find((one) => one.name === done.name)?.label ?? inWords(done.name ?? "");
  if (done.type === "click") return `clicked ${name}`;
  if (done.type === "type_and_submit") return `typed “${done.text}” into ${name}`;
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
