import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { escape, ESCAPES, onEscape, pageEvents, stopDrawing } from "../../static/js/page-events.js";

const ROOT = new URL("../../static/js/", import.meta.url);
const SOURCES = readdirSync(ROOT, { recursive: true })
  .filter((name) => name.endsWith(".js"))
  .map((name) => readFileSync(new URL(name, ROOT), "utf8"));

test("Escape closes one thing each time: menus, then drawings, then panels, and the selection at last", () => {
  const open = new Set(ESCAPES);
  const closed = [];
  // Whoever is made first is not asked first.
  for (const step of ESCAPES.toSorted())
    onEscape(step, () => {
      if (!open.delete(step)) return false;
      closed.push(step);
      return step !== "tooltip"; // which goes away together with the selection
    });
  while (escape());
  assert.deepEqual(closed, [
    "menu",
    "why",
    "measuring",
    "filter",
    "area",
    "form",
    "rectangle",
    "statistics",
    "report",
    "table",
    "feature",
    "layer",
    "measurement",
    "kiosk",
    "tooltip",
    "selection",
  ]);
  for (const step of ["menu", "measuring", "report", "area", "table"]) open.add(step);
  closed.length = 0;
  while (stopDrawing());
  assert.deepEqual(closed, ["area", "report"]);
});

test("each step of Escape is taken by one module", () => {
  const taken = SOURCES.flatMap((source) => [...source.matchAll(/onEscape\("(\w+)"/g)].map(([, step]) => step));
  assert.deepEqual(taken.toSorted(), ESCAPES.toSorted());
});

test("who subscribed first is told first, and only of the events that it named", () => {
  const told = [];
  pageEvents.on("theme", () => told.push("colours"));
  pageEvents.on("theme units", () => told.push("both"));
  pageEvents.on("units", () => told.push("figures"));
  pageEvents.emit("theme");
  assert.deepEqual(told.splice(0), ["colours", "both"]);
  pageEvents.emit("units");
  assert.deepEqual(told, ["both", "figures"]);
});
