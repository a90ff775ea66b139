"use strict";
// What a chart's lines say where the pointer is: data-lines holds [label, [[x, y of the drawing, x, y of the data], …]].

const tip = element("div", { id: "tip", hidden: true });
const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 }).replace("-", "−");

function showValues(event) {
  const chart = event.currentTarget;
  const box = chart.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
  const nearest = JSON.parse(chart.dataset.lines).filter(([, points]) => points.length).map(([label, points]) => [
    label, points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best)),
  ]);
  if (!nearest.length) return;
  tip.replaceChildren(
    element("b", {}, `${chart.dataset.x}: ${number(nearest[0][1][2])}`),
    ...nearest.map(([label, point]) => element("div", {}, `${label}: ${number(point[3])}`)),
  );
  chart.querySelectorAll(".hovered").forEach((dot) => dot.remove());
  for (const [, point] of nearest) {
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [name, value] of Object.entries({ class: "hovered", cx: point[0], cy: point[1], r: 2.5 })) dot.setAttribute(name, value);
    chart.append(dot);
  }
  tip.hidden = false;
  tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 8)}px`;
}

function hideValues(event) {
  tip.hidden = true;
  event.currentTarget.querySelectorAll(".hovered").forEach((dot) => dot.remove());
}

function listenToCharts() {
  document.body.append(tip);
  for (const chart of document.querySelectorAll("svg.chart[data-lines]")) {
    chart.addEventListener("pointermove", showValues);
    chart.addEventListener("pointerleave", hideValues);
  }
}
