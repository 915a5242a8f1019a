// Measures the page's own frames, with ?meter=1: an overlay, `data-frames` on <body>, the event "lookout:frames".

import { $, h } from "./dom.js";

const WINDOW_MS = 1000;

/** Figures of frame times in milliseconds: frames/s, median, 99th percentile, longest. Pure. */
export function frameFigures(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  const total = sorted.reduce((sum, time) => sum + time, 0);
  const round = (value) => Math.round(value * 10) / 10;
  return {
    frames: sorted.length,
    fps: round(total > 0 ? (1000 * sorted.length) / total : 0),
    p50: round(at(0.5)),
    p99: round(at(0.99)),
    max: round(sorted.at(-1) ?? 0),
  };
}

/** Start measuring; `details()` adds figures of the page's own, for instance the number of objects. */
export function startFrameMeter(details) {
  const box = h("output", { id: "meter", "aria-hidden": "true" });
  $("map-area").append(box);
  let times = [];
  let last = null;
  let since = null;
  const frame = (time) => {
    if (last !== null) times.push(time - last);
    since ??= time;
    last = time;
    if (time - since >= WINDOW_MS) {
      const figures = { ...frameFigures(times), ...details() };
      performance.measure("lookout:frames", { start: since, end: time, detail: figures });
      performance.clearMeasures("lookout:frames");
      document.body.dataset.frames = JSON.stringify(figures);
      window.dispatchEvent(new CustomEvent("lookout:frames", { detail: figures }));
      box.textContent = `${figures.fps} fps  p50 ${figures.p50}  p99 ${figures.p99}  max ${figures.max} ms  ${figures.visible} shown`;
      times = [];
      since = time;
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
