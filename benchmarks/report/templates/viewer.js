"use strict";
// The session viewer: filters on the left, one step of one session on the right. The address says what is open,
//
//     #session/ID/STEP/AGENT        STEP counts from 0, as in the records; AGENT is a label, and may be left out
//
// and changing it opens that step; so a link to a step is the address itself.

const state = { index: null, people: null, chosen: new Set(), filters: noFilters(), matches: [], open: null, withNames: false, drawing: 0 };
const byId = (id) => document.getElementById(id);

// ---- what is open ----------------------------------------------------------------------------------------------------

function hashOf({ place, step, agent }) {
  const parts = ["session", state.index.sessions[place].id, step];
  if (agent !== ANY) parts.push(state.index.agents[agent].label);
  return `#${parts.map(encodeURIComponent).join("/")}`;
}

function readHash() {
  let parts;
  try {
    parts = location.hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return null; // a broken escape
  }
  if (parts[0] !== "session") return null;
  const place = state.index.sessions.findIndex((session) => session.id === parts[1]);
  if (place < 0) return { unknown: parts[1] };
  const last = state.index.sessions[place].steps.length - 1;
  const step = Math.min(Math.max(Number.parseInt(parts[2], 10) || 0, 0), last);
  return { place, step, agent: state.index.agents.findIndex((agent) => agent.label === parts[3]) };
}

function open(target) {
  state.open = target; // at once: the next key may come before this step is drawn
  const hash = hashOf(target);
  if (hash === location.hash) route();
  else location.replace(hash); // walking through steps fills no history
}

async function route() {
  const viewing = /^#session(s|\/)/.test(location.hash);
  byId("figures").hidden = viewing;
  byId("sessions").hidden = !viewing;
  for (const [id, current] of [["to-figures", !viewing], ["to-sessions", viewing]]) {
    if (current) byId(id).setAttribute("aria-current", "page");
    else byId(id).removeAttribute("aria-current");
  }
  if (!viewing) {
    byId(location.hash.slice(1))?.scrollIntoView();
    return;
  }
  if (!byId("list")) return; // a report without sessions
  try {
    await prepare();
    const found = readHash();
    if (found && found.unknown !== undefined) return say(`No session '${found.unknown}' is in this file.`);
    if (found) await show(found);
    else if (state.open) open(state.open);
    else if (state.matches.length) open(firstOf(state.matches[0]));
    else say("No session is in this file.");
  } catch (error) {
    say(`The sessions cannot be read: ${error.message}. A browser of 2023 or later is needed.`);
  }
}

function say(words) {
  byId("viewer").replaceChildren(element("p", { class: "note" }, words));
}

function firstOf(match) {
  return { place: match.place, step: match.steps[0], agent: state.filters.agent };
}

async function prepare() {
  if (state.index) return;
  const [index, people] = await Promise.all([block("index"), block("people")]);
  Object.assign(state, { index, people });
  chooseFirstAgents();
  fillFilters();
  await filter();
}

// ---- one step ----------------------------------------------------------------------------------------------------------

async function show(target) {
  state.open = target;
  if (includeAgent(target.agent)) await filter();
  const session = state.index.sessions[target.place];
  const steps = (await block(`sessions-${session.chapter}`))[session.place];
  const page = await pageText(steps[target.step].page);
  if (state.open !== target) return; // somebody walked on meanwhile
  const step = steps[target.step];
  const { text, found } = markedDocument(page, marksOf(step, target.agent), state.withNames);
  const frameBox = element("div", { class: "frame-box" });
  byId("viewer").replaceChildren(
    heading(target, session),
    stepper(target, session, steps),
    element("div", { class: "step-body" }, element("div", { class: "shown-page" }, pageBar(step, target.agent), frameBox), cards(target, session, step, found)),
  );
  showDocument(frameBox, text, `The page of step ${target.step + 1}`, found.size > 0);
  byId("viewer").scrollTop = 0;
  byId("viewer").querySelector(".stepper [aria-current]").scrollIntoView({ block: "nearest", inline: "nearest" });
  markOpen();
  document.title = `${session.id}, step ${target.step + 1}`;
}

async function pageText(number) {
  const firsts = state.index.first_pages;
  let chapter = firsts.length - 1;
  while (firsts[chapter] > number) chapter -= 1;
  return (await block(`pages-${chapter}`))[number - firsts[chapter]];
}

function heading(target, session) {
  const person = state.people[session.user];
  const head = element(
    "div", { class: "session-head" }, element("h2", {}, session.id), element("small", {}, session.user),
    element(
      "span", { class: "turn" },
      element("button", { type: "button", title: "Session before (k)", onclick: () => turnSession(-1) }, "‹ session"),
      element("button", { type: "button", title: "Next session (j)", onclick: () => turnSession(1) }, "session ›"),
    ),
  );
  const parts = [head];
  if (session.goal) parts.push(element("p", { class: "goal" }, session.goal));
  if (person) {
    const traits = Object.entries(person.traits).map(([name, value]) => `${name}: ${value}`).join(" · ");
    const told = state.index.personas_shown === "matched" ? "" : `, agents were shown: ${state.index.personas_shown}`;
    const summary = element("summary", {}, `Persona ${traits ? `(${traits.slice(0, 90)})` : ""}${told}`);
    parts.push(element("details", { class: "persona" }, summary, element("p", {}, person.text)));
  }
  return element("div", {}, ...parts);
}

function stepper(target, session, steps) {
  const match = isFiltered(state.filters) && state.matches.find((one) => one.place === target.place);
  const matching = new Set(match ? match.steps : []);
  const row = element("div", { class: "stepper", role: "group", "aria-label": "Steps" });
  for (const [number, [type, outcomes]] of session.steps.entries()) {
    const right = chosenAgents().filter((agent) => isRight(outcomes[agent] ?? 0)).length;
    const told = !outcomes.length ? "given" : target.agent === ANY ? `${right} of ${state.chosen.size} ✓` : isRight(outcomes[target.agent]) ? "✓" : "✗";
    const gap = steps[number].gap ? "… " : "";
    row.append(
      element(
        "button", {
          type: "button", class: matching.has(number) ? "matching" : null, "aria-current": number === target.step ? "step" : null,
          onclick: () => open({ ...target, step: number }),
        },
        `${gap}${number + 1} ${state.index.types[type].replaceAll("_", " ")}`, element("small", {}, told),
      ),
    );
  }
  return row;
}

function pageBar(step, agent) {
  const names = element("input", { type: "checkbox", id: "with-names", checked: state.withNames });
  names.addEventListener("change", () => { state.withNames = names.checked; show(state.open); });
  const leaving = step.logged.type === "terminate" ? ["✓ log"] : [];
  for (const [number, answer] of step.answers.entries()) {
    if (answer.action?.type === "terminate" && isLookedAt(number, agent)) leaving.push(letterOf(number));
  }
  return element(
    "div", { class: "page-bar" }, element("span", { class: "url" }, step.url || "the page as it was shown, simplified"),
    leaving.length ? element("span", { class: "leaving" }, `terminates: ${leaving.join(" ")}`) : null, element("label", {}, names, "names"),
  );
}

function cards(target, session, step, found) {
  const box = element("div", { class: "answers" }, loggedCard(step, found));
  const outcomes = session.steps[target.step][1];
  if (!step.answers.length) box.append(element("p", { class: "note" }, "This step was not asked about: a session's first action is taken as known."));
  const choose = (agent) => open({ ...target, agent: target.agent === agent ? ANY : agent });
  for (const group of groupedAnswers(state.index, step, outcomes)) box.append(groupCard(state.index, step, group, target.agent, found, choose));
  return box;
}

// ---- beginning ---------------------------------------------------------------------------------------------------------

function listen() {
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", route);
  window.addEventListener("blur", () => setTimeout(onBlur));
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("theme").addEventListener("click", turnTheme);
  for (const link of document.querySelectorAll("[data-outcome]")) link.addEventListener("click", openOutcome);
  if (!byId("list")) return;
  for (const id of ["filter-agent", "filter-answer", "filter-type", "filter-disagree"]) byId(id).addEventListener("change", refilter);
  for (const id of ["filter-shopper", "search"]) byId(id).addEventListener("input", refilter);
  byId("list").addEventListener("scroll", growList, { passive: true });
  byId("finder-toggle").addEventListener("click", () => showFinder(!byId("finder").classList.contains("open")));
  byId("clear").addEventListener("click", () => { setFilters({}); filter(); });
}

// On a phone the finder is folded away over the session.
function showFinder(open) {
  byId("finder").classList.toggle("open", open);
  byId("finder-toggle").setAttribute("aria-expanded", open);
}

async function refilter() {
  readFilters();
  await filter();
}

// From a bar of the first screen to its steps.
async function openOutcome(event) {
  if (!byId("list")) return;
  event.preventDefault();
  const { agent, outcome } = event.currentTarget.dataset;
  await prepare();
  setFilters({ agent: Number(agent), answer: outcome });
  await filter();
  if (state.matches.length) location.hash = hashOf(firstOf(state.matches[0]));
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function turnTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  byId("theme").textContent = isDark() ? "Light" : "Dark";
}

byId("theme").textContent = isDark() ? "Light" : "Dark";
listen();
route();
