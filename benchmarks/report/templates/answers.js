"use strict";
// What the shopper did at a step and what each agent answered, as cards beside the page.

function letterOf(agent) {
  return agent < 26 ? String.fromCharCode(65 + agent) : `A${agent}`;
}

function actionWords(action) {
  if (!action) return [element("em", {}, "no readable action")];
  if (action.type === "terminate") return ["leaves the shop"];
  const name = action.name ? element("code", {}, action.name) : element("em", {}, "something that was not recorded");
  if (action.type === "click") return ["clicks ", name];
  return [`types “${action.text}” into `, name];
}

// The elements that the log and the agents name, the log's first. `agent` ANY: all agents'.
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
    if (agent === ANY || agent === number) at(answer.action)?.letters.push(letterOf(number));
  }
  return [...marks.values()];
}

function loggedCard(step, onPage) {
  const card = element("div", { class: "answer" });
  card.append(
    element("h3", {}, element("span", { class: "badge log" }, "✓ log"), "The shopper ", step.click_type ? element("small", {}, step.click_type) : null),
    element("p", {}, ...actionWords(step.logged)),
    element("p", {}, step.rationale ? `“${step.rationale}”` : element("small", {}, "no reason was recorded")),
  );
  if (step.logged.name && !onPage.has(step.logged.name)) card.append(missing());
  return card;
}

function missing() {
  return element("p", { class: "missing" }, "⚠ no element of that name is on the page");
}

function answerCard(index, step, number, outcome, focused, onPage, choose) {
  const answer = step.answers[number];
  const agent = index.agents[number];
  const card = element("div", { class: focused ? "answer" : "answer faded", "data-agent": number });
  const points = answer.reward === undefined ? null : element("span", { class: "points" }, `${numberWords(answer.reward)} points`);
  card.append(
    element(
      "h3", {}, element("span", { class: "badge" }, letterOf(number)),
      element("button", { type: "button", title: "Look at this agent alone", onclick: () => choose(number) }, agent.label),
      element("span", { class: `verdict ${outcome.code}` }, outcome.words), points,
    ),
  );
  if (answer.error) card.append(element("p", { class: "missing" }, answer.error));
  if (answer.reply !== undefined) {
    card.append(element("p", {}, ...actionWords(answer.action)));
    if (answer.problem) card.append(element("p", { class: "missing" }, `what is wrong with it: ${answer.problem.replaceAll("_", " ")}`));
    if (answer.rationale) card.append(element("p", {}, `“${answer.rationale}”`));
    if (answer.action && answer.action.name && !onPage.has(answer.action.name)) card.append(missing());
  }
  if (answer.terms && Object.keys(answer.terms).length) card.append(termsLine(index, answer.terms));
  if (answer.likeliest) card.append(likeliest(step, answer));
  if (answer.reply !== undefined) card.append(element("details", {}, element("summary", {}, "reply as written"), element("pre", {}, answer.reply)));
  return card;
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
    const words = action[0] === "terminate" ? "leaves" : action.slice(1).join(" “") + (action.length > 2 ? "”" : "");
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
