// Charts as SVG whose points can be read one by one: with the pointer, a finger, or the arrow keys.

import { h, setText } from "../../dom.js";
import { linear } from "./scales.js";

const SVG = "http://www.w3.org/2000/svg";
/** The size of a chart in its own units; it is as wide as the panel. */
export const WIDTH = 312;
export const LEFT = 50; // room for the labels of values
export const AXIS = 20; // room below for the labels of the base
const MOST_POINTS = 700; // more of them cannot be told apart

/** Make an SVG element; `null` attributes are left out. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Return the numbers of the points of a long line that are drawn: the last one, and others at even distances. */
export function drawnOf(many) {
  const each = Math.ceil(many / MOST_POINTS);
  return Array.from({ length: Math.ceil(many / each) }, (_, i) => many - 1 - i * each).reverse();
}

/** Return the path through points `[[x, y], ...]`; a point with a missing y breaks the line. */
export function pathOf(points) {
  return points
    .map(([x, y], i) =>
      Number.isFinite(y) ? `${i > 0 && Number.isFinite(points[i - 1][1]) ? "L" : "M"}${round(x)} ${round(y)}` : "",
    )
    .join("");
}

/** Return the path around a band `[[x, low, high], ...]`; a missing end breaks it. */
export function bandOf(points) {
  /** @type {any[][]} */
  const parts = [[]];
  for (const point of points) {
    if (point.every(Number.isFinite)) parts[parts.length - 1].push(point);
    else parts.push([]);
  }
  const around = (part) =>
    `${pathOf(part.map(([x, , high]) => [x, high]))}L${pathOf(part.map(([x, low]) => [x, low]).reverse()).slice(1)}Z`;
  return parts
    .filter((part) => part.length > 0)
    .map(around)
    .join("");
}

/** Return the lines and labels of values at the left, `ticks` being `[[y, text], ...]`. */
export function valueAxis(ticks) {
  return ticks.flatMap(([y, text]) => [
    s("line", { class: "chart-grid", x1: LEFT, x2: WIDTH, y1: y, y2: y }),
    s("text", { class: "chart-label", x: LEFT - 6, y: y + 3.5, "text-anchor": "end" }, text),
  ]);
}

/** Return the labels below a chart, `ticks` being `[[x, text], ...]`. */
export function baseAxis(ticks, y) {
  const place = (x) => Math.min(Math.max(x, LEFT + 12), WIDTH - 16);
  return ticks.map(([x, text]) =>
    s("text", { class: "chart-label", x: place(x), y: y + 14, "text-anchor": "middle" }, text),
  );
}

/**
 * Make the element of a chart.
 *
 * @param {Record<string, any>} chart `title`; `height`; `marks`, SVG elements; `places`, the x of each point; `words(i)`, what to say of a
 *   point; `first`, the point that is told at the start
 */
export function createChart({ title, height, marks, places, words, first = places.length - 1 }) {
  const cursor = s("line", { class: "chart-cursor", y1: 0, y2: height - AXIS });
  const svg = s(
    "svg",
    { class: "chart-svg", viewBox: `0 0 ${WIDTH} ${height}`, "aria-hidden": "true" },
    ...marks,
    cursor,
  );
  const told = h("p", { class: "chart-told" });
  const plot = h(
    "div",
    {
      class: "chart-plot",
      tabindex: "0",
      role: "slider",
      "aria-label": title,
      "aria-valuemin": "0",
      "aria-valuemax": Math.max(places.length - 1, 0),
    },
    svg,
  );
  let at = -1;
  const tell = (point) => {
    const next = Math.min(Math.max(point, 0), places.length - 1);
    if (next === at || next < 0) return;
    at = next;
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, places[at]);
    plot.setAttribute("aria-valuenow", at);
    const text = words(at);
    plot.setAttribute("aria-valuetext", text);
    setText(told, text);
  };
  const point = ({ clientX }) => {
    const box = svg.getBoundingClientRect();
    const x = linear([box.left, box.right], [0, WIDTH])(clientX);
    tell(places.reduce((best, place, i) => (Math.abs(place - x) < Math.abs(places[best] - x) ? i : best), 0));
  };
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("keydown", (event) => {
    const target = {
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      Home: 0,
      End: places.length - 1,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    tell(target);
  });
  tell(first);
  return h("figure", { class: "chart-figure" }, plot, told);
}

function round(value) {
  return Math.round(value * 10) / 10;
}
