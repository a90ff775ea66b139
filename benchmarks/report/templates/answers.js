"use strict";
// What the shopper did at a step and what each agent answered, as cards beside the page.

const NAMELESS = { terminate: "terminates", scroll: "scrolls" }; // actions without an element

function letterOf(agent) {
  return agent < 26 ? String.fromCharCode(65 + agent) : `A${agent}`;
}

function actionWords(action) {
  if (!action) return [element("em", {}, "no readable action")];
  if (NAMELESS[action.type]) return [NAMELESS[action.type]];
  const name = action.name ? element("code", {}, action.name) : element("em", {}, "something that was not recorded");
  if (action.type === "click") return ["clicks ", name];
  return [`types “${action.text}” into `, name];
}

// The elements that the log and the agents name, the log's first. `agent` ANY: those of all chosen agents.
function marksOf(step, agent) {
  const marks = new Map();
  const at = (action) => {
    if (!action || !action.name) return null;
    if (!marks.has(action.name)) marks.set(action.name, { name: action.name, logged: false, letters: [] });
    return marks.get(action.name);
  };
  const logged = at(step.logged);
  if (logged) logged.logged = true;
  for (const [number, answer] of step.answers.entries()) {
    if (isLookedAt(number, agent)) at(answer.action)?.letters.push(letterOf(number));
  }
  return [...marks.values()];
}

function loggedCard(step, onPage) {
  const card = element("div", { class: "answer" });
  card.append(
    element("h3", {}, element("span", { class: "badge log" }, "✓ log"), "The shopper ", step.click_type ? element("small", {}, step.click_type) : null),
    element("p", { class: "did" }, ...actionWords(step.logged)),
    element("p", {}, step.rationale ? `“${step.rationale}”` : element("small", {}, "no reason was recorded")),
  );
  if (step.logged.name && !onPage.has(step.logged.name)) card.append(missing());
  return card;
}

function missing() {
  return element("p", { class: "missing" }, "⚠ no element of that name is on the page");
}

function isLookedAt(number, agent) {
  return agent === ANY ? state.chosen.has(number) : agent === number;
}

// Chosen agents that answered the same share a card; right ones first, then what most answered.
function groupedAnswers(index, step, outcomes) {
  const groups = new Map();
  for (const [number, answer] of step.answers.entries()) {
    if (!state.chosen.has(number)) continue;
    const outcome = index.outcomes[outcomes[number]];
    const key = JSON.stringify([outcome.code, answer.action || null]);
    if (!groups.has(key)) groups.set(key, { outcome, action: answer.action, agents: [] });
    groups.get(key).agents.push(number);
  }
  const order = (group) => (group.outcome.code === "right" ? -1000 : 0) - group.agents.length;
  return [...groups.values()].sort((one, other) => order(one) - order(other));
}

function groupCard(index, step, group, agent, onPage, choose) {
  const looked = group.agents.includes(agent) || agent === ANY;
  const card = element("div", { class: looked ? "answer" : "answer faded", "data-outcome": group.outcome.code });
  const first = step.answers[group.agents[0]];
  const points = first.reward === undefined ? null : element("span", { class: "points" }, `${numberWords(first.reward)} of ${numberWords(step.most)} points`);
  card.append(element("h3", {}, element("span", { class: `verdict ${group.outcome.code}` }, group.outcome.words), points));
  if (first.reply !== undefined) card.append(element("p", { class: "did" }, ...actionWords(group.action)));
  if (group.action && group.action.name && looked && !onPage.has(group.action.name)) card.append(missing());
  if (first.terms && Object.keys(first.terms).length) card.append(termsLine(index, first.terms));
  for (const number of group.agents) card.append(agentLine(index, step, number, choose));
  return card;
}

function agentLine(index, step, number, choose) {
  const answer = step.answers[number];
  const line = element("div", { class: "said", "data-agent": number });
  const button = element("button", { type: "button", title: "Look at this agent alone", onclick: () => choose(number) }, element("span", { class: "badge" }, letterOf(number)), ` ${index.agents[number].label}`);
  line.append(button);
  if (answer.rationale) line.append(element("span", {}, ` “${answer.rationale}”`));
  if (answer.problem) line.append(element("span", { class: "missing" }, ` ${answer.problem.replaceAll("_", " ")}`));
  if (answer.error) line.append(element("span", { class: "missing" }, ` ${answer.error}`));
  if (answer.reply !== undefined) line.append(element("details", {}, element("summary", { title: "The reply as it was written" }, "{…}"), element("pre", {}, answer.reply)));
  if (answer.likeliest) line.append(likeliest(step, answer));
  return line;
}

function termsLine(index, terms) {
  const line = element("div", { class: "terms" });
  for (const [name, value] of Object.entries(terms)) line.append(element("span", {}, `${index.terms[name]} ${numberWords(value)}`));
  return line;
}

function likeliest(step, answer) {
  const sought = Object.values(step.logged).join("\n");
  const rows = element("div", { class: "likeliest" });
  for (const [action, probability] of answer.likeliest) {
    const logged = action.join("\n") === sought;
    const words = NAMELESS[action[0]] ?? (action.length > 2 ? `${action[1]} “${action[2]}”` : action[1]);
    rows.append(
      element("span", {}, `${(100 * probability).toFixed(1)}%`),
      element("span", { class: logged ? "bar logged" : "bar", style: `--share:${100 * probability}%` }, logged ? `✓ ${words}` : words),
    );
  }
  const rank = answer.rank === undefined ? "" : `the logged action: ${(100 * answer.probability).toFixed(1)}%, rank ${answer.rank}`;
  return element("div", {}, rows, element("p", { class: "missing" }, rank));
}

function numberWords(value) {
  return Number(value.toFixed(2)).toLocaleString("en").replace("-", "−");
}
