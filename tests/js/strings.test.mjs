// The gate: what a user reads comes from the catalogue of the user's language.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { literalsOf } from "./literals.mjs";

const ROOT = new URL("../../static/js/", import.meta.url).pathname;
const CATALOGUE = ["gettext", "ngettext", "pgettext"];

// Arguments that the page shows, from this one on.
const SHOWN_ARGUMENTS = { h: 2, Option: 0, toast: 0, setText: 1, setHint: 1, confirmed: 0, ServerError: 0, alert: 0 };
const ONLY_FIRST = ["Option", "toast"];
// Properties and attributes that the page shows.
const SHOWN_PROPERTIES =
  /(?:\b(?:text|title|label|hint|placeholder|message|ariaLabel)|"")\s*:\s*$|\.(?:textContent|title|ariaLabel|placeholder|innerText)\s*=\s*$/;
const SHOWN_ATTRIBUTES = [
  "aria-label",
  "aria-description",
  "aria-roledescription",
  "aria-valuetext",
  "placeholder",
  "title",
];

// Where texts are for the browser: selectors, styles, formats of files, names of events and keys.
const CODE_CALLS =
  /^(create|#marker|replace|querySelector|querySelectorAll|closest|matches|matchMedia|on|off|addEventListener|getPropertyValue|setProperty|getElementById|\$|createElement|open|setRequestHeader|includes|endsWith|startsWith|getPane|createPane)$/;
const CODE_PROPERTIES =
  /\b(class|className|id|d|viewBox|font|pane|style|transform|rootMargin|type|key|html|rel|href|src|credit|source|method|format|classes)\s*[:=]\s*$/;
const CODE_WORDS = new Set(
  (
    "Point LineString Polygon MultiPoint MultiLineString MultiPolygon GeometryCollection Feature FeatureCollection " +
    "Escape Enter Tab Delete Backspace Home End PageUp PageDown ArrowUp ArrowDown ArrowLeft ArrowRight Esc Files " +
    "AbortError Content-Type Float64Array UTC Lookout"
  ).split(" "),
);
const UNITS =
  /^[\s\u0000.,:;()/%+<>=~-]*((s|m|h|d|ms|min|km|fps|UTC|KiB|MiB|GiB|Hz|px|nm|kn|ft|mi|mph|lb|kg)\b[\s\u0000.,:;()/%+<>=~-]*)*$/;

// Selectors and styles, by how they look.
const CODE_TEXTS = /\[type=|^linear-gradient\(|^italic /;

// What is written for machines, or for those who develop Lookout, or is a name.
const ALLOWED = new Map([
  ["map/base-layer.js", /^<a href="https:[^>]*>[\w ]+<\/a>$/], // the names of those who made the data
  ["frame-meter.js", /fps/], // an overlay for measurements
  ["map/map.js", /^(OpenStreetMap|Natural Earth) \(/], // the names by which a browser remembers base maps
  ["queries/query-answer.js", /^(above|below) |for /], // the engine's names of thresholds
]);

function sourcesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? sourcesIn(join(folder, entry.name))
      : entry.name.endsWith(".js")
        ? [join(folder, entry.name)]
        : [],
  );
}

/** Whether a text looks like English to be read: two words, or one that begins with a capital letter. */
function reads(text) {
  const plain = text.replace(/\\u[0-9a-f]{4}|\\./g, " ");
  if (CODE_WORDS.has(plain) || UNITS.test(plain) || CODE_TEXTS.test(plain)) return false;
  return (
    /[A-Za-z\u0000]{1,}[,.;:?!)]* [a-z]{2,}\b/.test(plain) ||
    /[a-z]{2,} \u0000/.test(plain) ||
    /^[A-Z][a-z]{2,}[.?!]?$/.test(plain)
  );
}

function isShown({ text, before, after, callee, at }, attribute) {
  if (/[!=]==?\s*$/.test(before) || /^\s*([!=]==|in\b)/.test(after) || (/^\s*:/.test(after) && /[{,]\s*$/.test(before)))
    return false;
  if (!/[A-Za-z]{2}/.test(text) || UNITS.test(text) || CODE_WORDS.has(text)) return false;
  const first = Object.hasOwn(SHOWN_ARGUMENTS, callee) ? SHOWN_ARGUMENTS[callee] : Infinity;
  if (at >= first && !(ONLY_FIRST.includes(callee) && at > first)) return true;
  return (
    SHOWN_ATTRIBUTES.includes(attribute) ||
    (attribute === null && SHOWN_PROPERTIES.test(before) && !/""\s*:\s*$/.test(before))
  );
}

/** Whether a text is the second of an array that begins with "", so the name of a choice of no value. */
const isChoice = ({ text, before }, previous) =>
  /\[""\s*,\s*$/.test(before) && previous.text === "" && /[A-Za-z]{2}/.test(text);

/** Whether a text is prose that no machine reads. */
function isProse({ text, before, after, callee }, attribute) {
  const code =
    CODE_CALLS.test(callee) ||
    CODE_PROPERTIES.test(before) ||
    /^(aria-(controls|describedby|labelledby)|data-.*|class)$/.test(attribute ?? "");
  const key = /^\s*:/.test(after) && /[{,]\s*$/.test(before);
  return reads(text) && !code && !key && !/[!=]==?\s*$/.test(before);
}

/** Return the English of a source that is not in the catalogue: `line: text`. */
export function faultsOf(source, name = "") {
  const literals = literalsOf(source);
  return literals.flatMap((literal, i) => {
    const { text, line, before, callee, template } = literal;
    if (CATALOGUE.includes(callee)) return template ? [`${line}: a template in ${callee}: ${text}`] : [];
    if (/\b(import|from)\s*$/.test(before) || ALLOWED.get(name)?.test(text)) return [];
    const attribute = /""\s*:\s*$/.test(before) ? literals[i - 1].text : null;
    const fault = isProse(literal, attribute) || isChoice(literal, literals[i - 1]) || isShown(literal, attribute);
    return fault ? [`${line}: ${text.replaceAll("\u0000", "${}")}`] : [];
  });
}

test("English outside of the catalogue is found", () => {
  const all = [
    'setText(line, "Nothing is drawn yet.");',
    'setText(line, many ? "groups" : gettext("one"));',
    'h("span", { class: "hint" }, "for");',
    "toast(`Deleted ${name}.`);",
    'new Option("above", "above");',
    'offer(select, [["", [["", "nothing"]]]]);',
    'const A = { text: "Zoom in" };',
    'button.title = "Close";',
    'x = h("button", { "aria-label": "Close" });',
    'throw new Error("The map could not be loaded.");',
    "gettext(`Delete ${name}`);",
    "return `and ${count(more)} more`;",
    'const STATES = { live: "Live" };',
    'f(/"/.test(a) ? "Not found" : `${b ? "No answer" : c}`)',
  ];
  const missed = all.filter((source) => faultsOf(source).length === 0);
  assert.deepEqual(missed, []);
  assert.equal(faultsOf(all.at(-1)).length, 2);
});

test("what a browser or a server reads is not taken for English", () => {
  const all = [
    'h("p", { class: "query-note hint", "data-action": name }, gettext("Close"));',
    'document.querySelector(".a [role=option]");',
    'if (event.key === "Escape") f();',
    'map.on("moveend zoomend", f);',
    "element.className = `kind kind-${name}`;",
    'import { a } from "./a.js";',
    "return `${round(s)} min`;",
    "// A comment of several words",
    'new Option(gettext("above"), "above");',
    'const { "aria-label": name } = parts;',
  ];
  assert.deepEqual(
    all.flatMap((source) => faultsOf(source)),
    [],
  );
});

test("all that the page shows is in the catalogue", () => {
  const files = sourcesIn(ROOT);
  assert.ok(files.length > 150);
  const faults = files.flatMap((path) => {
    const name = path.slice(ROOT.length);
    return faultsOf(readFileSync(path, "utf8"), name).map((fault) => `static/js/${name}:${fault}`);
  });
  assert.deepEqual(faults, [], `${faults.length} texts are not given to gettext`);
});
