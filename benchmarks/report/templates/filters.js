"use strict";
// Which steps the filters let through. Everything but the search is decided by the index; the search reads all replies
// once, at the first search.

const ANY = -1;
const searchable = new Map(); // place of a session in the index -> its words, step by step

function noFilters() {
  return { agent: ANY, answer: "", type: ANY, shopper: "", disagree: false, search: "" };
}

function isFiltered(filters) {
  return Boolean(filters.answer || filters.type !== ANY || filters.shopper || filters.disagree || filters.search);
}

// Sessions that have a step which matches, each with the numbers of those steps.
async function matchingSessions(index, people, filters, chosen) {
  if (filters.search) await readAllWords(index);
  const found = [];
  for (const [place, session] of index.sessions.entries()) {
    if (!shopperMatches(session, people, filters.shopper)) continue;
    const steps = [];
    for (let number = 0; number < session.steps.length; number += 1) {
      if (stepMatches(index, session, number, filters, chosen) && wordsMatch(place, session, number, filters.search)) steps.push(number);
    }
    if (steps.length) found.push({ place, steps });
  }
  return found;
}

// `chosen`: the numbers of the agents that are compared.
function stepMatches(index, session, number, filters, chosen) {
  const [type, outcomes, actions] = session.steps[number];
  if (!outcomes.length) return false; // nobody was asked there
  if (filters.type !== ANY && type !== filters.type) return false;
  if (filters.disagree && new Set(chosen.map((agent) => actions[agent])).size < 2) return false;
  if (!filters.answer) return true;
  const looked = filters.agent === ANY ? chosen : [filters.agent];
  return looked.some((agent) => answerMatches(index.outcomes[outcomes[agent]].code, filters.answer));
}

function answerMatches(code, wanted) {
  if (wanted === "wrong") return code !== "right" && code !== "unknown";
  return code === wanted;
}

function shopperMatches(session, people, wanted) {
  if (!wanted) return true;
  const person = people[session.user] || { text: "", traits: {} };
  const words = [session.user, person.text, ...Object.entries(person.traits).map(([name, value]) => `${name} ${value}`)];
  return words.join("\n").toLowerCase().includes(wanted.toLowerCase());
}

function wordsMatch(place, session, number, wanted) {
  if (!wanted) return true;
  const sought = wanted.toLowerCase();
  const ofSession = `${session.id}\n${session.user}\n${session.goal || ""}`.toLowerCase();
  return ofSession.includes(sought) || searchable.get(place)[number].includes(sought);
}

async function readAllWords(index) {
  if (searchable.size) return;
  const chapters = await Promise.all(index.first_pages.map((_, number) => block(`sessions-${number}`)));
  for (const [place, session] of index.sessions.entries()) {
    searchable.set(place, chapters[session.chapter][session.place].map(wordsOfStep));
  }
}

function wordsOfStep(step) {
  const words = [step.rationale || "", ...Object.values(step.logged), step.url || ""];
  for (const answer of step.answers) words.push(answer.reply || "", answer.error || "");
  return words.join("\n").toLowerCase();
}
