"use strict";
// The list of sessions, its filters, and which agents are compared: at first those that are no baselines.

const LISTED_AT_ONCE = 150;

function chosenAgents() {
  return [...state.chosen].sort((one, other) => one - other);
}

function chooseFirstAgents() {
  const agents = [...state.index.agents.keys()];
  const trained = agents.filter((agent) => !state.index.agents[agent].baseline);
  state.chosen = new Set(trained.length ? trained : agents);
}

function nameOf(agent) {
  return `${letterOf(agent)}  ${state.index.agents[agent].label}`;
}

function fillOptions(id, pairs) {
  byId(id).replaceChildren(...pairs.map(([value, words]) => element("option", { value }, words)));
}

function fillFilters() {
  fillOptions("filter-answer", [["", "any"], ["wrong", "differs from the log"], ...state.index.outcomes.map(({ code, words }) => [code, words])]);
  fillOptions("filter-type", [[ANY, "any"], ...state.index.types.map((type, number) => [number, type.replaceAll("_", " ")])]);
  fillAgents();
}

function fillAgents() {
  const boxes = [...state.index.agents.keys()].map((agent) => {
    const box = element("input", { type: "checkbox", value: agent, checked: state.chosen.has(agent) });
    box.addEventListener("change", () => chooseAgent(agent, box.checked));
    return element("label", { class: "check" }, box, nameOf(agent));
  });
  byId("agent-boxes").replaceChildren(...boxes);
  fillChosen();
}

function fillChosen() {
  byId("agents-count").textContent = `${state.chosen.size} of ${state.index.agents.length}`;
  fillOptions("filter-agent", [[ANY, "any of them"], ...chosenAgents().map((agent) => [agent, nameOf(agent)])]);
  byId("filter-agent").value = state.filters.agent;
  for (const box of byId("agent-boxes").querySelectorAll("input")) box.checked = state.chosen.has(Number(box.value));
}

async function chooseAgent(agent, isChosen) {
  if (isChosen) state.chosen.add(agent);
  else state.chosen.delete(agent);
  if (!isChosen && state.filters.agent === agent) state.filters.agent = ANY;
  fillChosen();
  await filter();
  if (state.open) open({ ...state.open, agent: state.chosen.has(state.open.agent) ? state.open.agent : ANY });
}

// An agent that is looked at is compared too.
function includeAgent(agent) {
  if (agent === ANY || state.chosen.has(agent)) return false;
  state.chosen.add(agent);
  fillChosen();
  return true;
}

function readFilters() {
  state.filters = {
    agent: Number(byId("filter-agent").value),
    answer: byId("filter-answer").value,
    type: Number(byId("filter-type").value),
    shopper: byId("filter-shopper").value.trim(),
    disagree: byId("filter-disagree").checked,
    search: byId("search").value.trim(),
  };
}

function setFilters(wanted) {
  const all = { ...noFilters(), ...wanted };
  includeAgent(all.agent);
  for (const name of ["agent", "answer", "type", "shopper"]) byId(`filter-${name}`).value = all[name];
  byId("filter-disagree").checked = all.disagree;
  byId("search").value = all.search;
  state.filters = all;
}

async function filter() {
  const drawing = (state.drawing += 1);
  const matches = await matchingSessions(state.index, state.people, state.filters, chosenAgents());
  if (drawing !== state.drawing) return; // typed on meanwhile
  state.matches = matches;
  const steps = matches.reduce((sum, match) => sum + match.steps.length, 0);
  const words = (number) => number.toLocaleString("en");
  byId("count").textContent = `${words(matches.length)} of ${words(state.index.sessions.length)} sessions, ${words(steps)} steps`;
  byId("list").replaceChildren();
  listUpTo(LISTED_AT_ONCE);
  markOpen();
}

// The list grows as it is scrolled: drawing thousands of sessions at once takes longer than anybody waits.
function listUpTo(count) {
  const list = byId("list");
  list.append(...state.matches.slice(list.children.length, count).map(listItem));
}

function growList() {
  const list = byId("list");
  if (list.scrollTop + 2 * list.clientHeight > list.scrollHeight) listUpTo(list.children.length + LISTED_AT_ONCE);
}

function listItem(match) {
  const session = state.index.sessions[match.place];
  const matching = new Set(isFiltered(state.filters) ? match.steps : []);
  const signs = session.steps.map(([, outcomes], number) => {
    const sign = signOf(outcomes);
    return matching.has(number) ? element("b", {}, sign) : sign; // few elements: there may be thousands of sessions
  });
  const asked = session.steps.filter(([, outcomes]) => outcomes.length).length;
  const steps = `${session.steps.length} steps, ${asked} predicted`;
  const button = element(
    "button", { type: "button", "data-place": match.place, onclick: () => { showFinder(false); open(firstOf(match)); } },
    element("span", { class: "wish" }, session.goal || session.id),
    element("small", {}, [...(session.goal ? [session.id] : []), steps].join(" · ")),
    element("span", { class: "who" }, element("span", { class: "signs", "aria-hidden": "true" }, ...signs), whoWasRight(session)),
  );
  return element("li", {}, button);
}

// At how many steps each chosen agent was right: `right: A 3, C 5`.
function whoWasRight(session) {
  const asked = session.steps.filter(([, outcomes]) => outcomes.length);
  const counts = chosenAgents().map((agent) => `${letterOf(agent)}\u00a0${asked.filter(([, outcomes]) => isRight(outcomes[agent])).length}`);
  return `right: ${counts.join(", ")}`;
}

function isRight(outcome) {
  return state.index.outcomes[outcome].code === "right";
}

// Of the agents that are looked at: all right, some, none; or nobody was asked.
function signOf(outcomes) {
  const agents = state.filters.agent === ANY ? chosenAgents() : [state.filters.agent];
  if (!outcomes.length || !agents.length) return "·";
  const right = agents.filter((agent) => isRight(outcomes[agent])).length;
  return right === agents.length ? "✓" : right ? "◐" : "✗";
}

function markOpen() {
  for (const button of byId("list").querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
  if (state.open) listUpTo(state.matches.findIndex((match) => match.place === state.open.place) + 1);
  const button = state.open && byId("list").querySelector(`[data-place="${state.open.place}"]`);
  if (!button) return;
  button.setAttribute("aria-current", "true");
  button.scrollIntoView({ block: "nearest" });
}
