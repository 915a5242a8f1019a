// A small line that shows the recent course of a number. The path is pure; only `createSparkline` touches the page.

import { filled, gettext } from "../i18n.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 120;
const HEIGHT = 28;
const MARGIN = 2;

/**
 * Return the path of steps through points `[ms, value]`, over the time from `fromMs` to `toMs`. A value holds until the next
 * point. A missing value breaks the line. Lower values lie lower; a line that does not rise or fall lies in the middle.
 */
export function steps(points, fromMs, toMs, width = WIDTH, height = HEIGHT) {
  const values = points.map(([, value]) => value).filter(Number.isFinite);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (ms) => round(((Math.max(ms, fromMs) - fromMs) / (toMs - fromMs)) * width);
  const y = (value) =>
    round(high === low ? height / 2 : MARGIN + ((high - value) / (high - low)) * (height - 2 * MARGIN));
  let path = "";
  points.forEach(([ms, value], i) => {
    if (!Number.isFinite(value)) return;
    const begins = i === 0 || !Number.isFinite(points[i - 1][1]);
    path += `${begins ? "M" : "L"}${x(ms)} ${y(value)}H${x(points[i + 1]?.[0] ?? toMs)}`;
  });
  return path;
}

/** Make an element with `update(points, nowMs, windowMs, text)`, where `text(value)` writes a value. Its colour is that of the text around. */
export function createSparkline() {
  const svg = document.createElementNS(SVG, "svg");
  const attributes = {
    class: "sparkline",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
  };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  const [area, line] = ["sparkline-area", "sparkline-line"].map((name) => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", name);
    svg.append(path);
    return path;
  });
  const update = (points, nowMs, windowMs, text) => {
    const first = Math.max(nowMs - windowMs, points[0]?.[0] ?? nowMs - windowMs);
    const from = Math.min(first, nowMs - 10_000);
    const path = steps(points, from, nowMs);
    line.setAttribute("d", path);
    area.setAttribute(
      "d",
      path && !path.slice(1).includes("M") ? `${path}V${HEIGHT}H${path.slice(1).split(" ")[0]}Z` : "",
    );
    svg.setAttribute("aria-label", words(points, nowMs - from, text));
  };
  return { element: svg, update };
}

/** Say in words what the line shows, for those who cannot see it. */
export function words(points, ms, text) {
  const values = points.map(([, value]) => value).filter(Number.isFinite);
  if (values.length === 0) return gettext("No recent value");
  const texts = {
    low: text(Math.min(...values)),
    high: text(Math.max(...values)),
    minutes: Math.max(1, Math.round(ms / 60_000)),
  };
  return filled(gettext("From %(low)s to %(high)s in the last %(minutes)s min"), texts);
}

function round(value) {
  return Math.round(value * 10) / 10;
}
