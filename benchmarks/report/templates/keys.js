"use strict";
// Walking by keys: through steps, sessions, and the steps that the filters match.

function turnStep(by) {
  const step = state.open.step + by;
  if (step >= 0 && step < state.index.sessions[state.open.place].steps.length) open({ ...state.open, step });
}

function turnSession(by) {
  const next = by > 0 ? state.matches.find((match) => match.place > state.open.place) : state.matches.findLast((match) => match.place < state.open.place);
  if (next) open({ ...firstOf(next), agent: state.open.agent });
}

function turnMatch(by) {
  const all = state.matches.flatMap((match) => match.steps.map((step) => ({ place: match.place, step })));
  const later = ({ place, step }) => place > state.open.place || (place === state.open.place && step > state.open.step);
  const before = ({ place, step }) => place < state.open.place || (place === state.open.place && step < state.open.step);
  const next = by > 0 ? all.find(later) : all.findLast(before);
  if (next) open({ ...next, agent: state.open.agent });
}

const KEYS = {
  ArrowRight: () => turnStep(1),
  ArrowLeft: () => turnStep(-1),
  j: () => turnSession(1),
  k: () => turnSession(-1),
  n: () => turnMatch(1),
  p: () => turnMatch(-1),
};

// A click into the page's frame would take the keys with it; who tabs into it, to scroll it by keys, stays there.
let lastKey = "";

function onBlur() {
  const inFrame = document.activeElement?.matches("iframe.frame");
  if (inFrame && lastKey !== "Tab") document.activeElement.blur();
}

function onKey(event) {
  lastKey = event.key;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const viewing = !byId("sessions").hidden;
  const typing = event.target.matches("input[type=search], input[type=text], select");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing) return;
  if (event.key === "?") byId("help").showModal();
  else if (event.key === "f") location.hash = viewing ? "#figures" : "#sessions";
  else if (event.key === "/" && byId("search")) {
    if (!viewing) location.hash = "#sessions";
    showFinder(true);
    setTimeout(() => byId("search").focus());
  } else if (viewing && state.open && KEYS[event.key]) KEYS[event.key]();
  else if (viewing && state.open && /^[0-9]$/.test(event.key)) {
    const agent = event.key === "0" ? ANY : chosenAgents()[Number(event.key) - 1];
    if (agent !== undefined) open({ ...state.open, agent });
  } else return;
  event.preventDefault();
}
