// Suggests what may be written at a place in a filter: names of properties, and values that objects have. Pure.

import { inBothUnits, plainText, unitsBehind } from "./filter-units.js";
import { parsed } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { DECODED_KINDS } from "../objects/object-kinds.js";

const MOST_OBJECTS = 1000;
const MOST_VALUES = 60;
const MOST_NAMES = 200;
const SHOWN = 8;
// Bound, in characters of JSON, of the objects that are sent for a check: the message must stay below the server's bound.
const MOST_CHARACTERS = 40_000;
const PLAIN = /^\p{L}[\p{L}\p{N}_.:]*$/u;
const NAME = /("(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_.:]*)/u.source;
const AFTER_OPERATOR = new RegExp(
  `${NAME}\\s*(?:=|<>|!=|<=|>=|<|>|\\blike\\b|\\b(?:not\\s+)?in\\s*\\((?:[^()']|'(?:[^']|'')*')*)\\s*('?)((?:[^'])*)$`,
  "iu",
);
// Where a name may begin: at the start, and after an operator, a bracket or a comma.
const BEGINS = /(^|\b(and|or|not|between|like)|[(,=<>+*/%^-])\s*$/iu;
const WORD = /[\p{L}_][\p{L}\p{N}_.:]*$|"[^"]*$/u;

/** Collect the properties of objects from their JSON texts: by name, how many objects have it, and how many have each value. */
export function vocabularyOf(texts) {
  const names = new Map();
  const objects = texts.slice(0, MOST_OBJECTS).map(parsed);
  for (const object of objects) {
    for (const [name, value] of Object.entries(object)) {
      if (value === null || typeof value === "object") continue;
      if (!names.has(name) && names.size >= MOST_NAMES) continue;
      const known = names.get(name) ?? { count: 0, values: new Map() };
      names.set(name, known);
      known.count++;
      if (known.values.has(value) || known.values.size < MOST_VALUES)
        known.values.set(value, (known.values.get(value) ?? 0) + 1);
    }
  }
  return { names, objects, whole: texts.length <= MOST_OBJECTS };
}

/** Return a name as it is written in a filter. */
export const written = (name) => (PLAIN.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

/** Return a value as it is written in a filter. */
export function literal(value) {
  if (typeof value === "boolean") return String(value).toUpperCase();
  return typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`;
}

/** Suggest what to write before the caret: `{start, choices: [{text, words}]}`; a choice replaces the text from `start` on. */
export function suggestions(text, caret, { names }) {
  const before = text.slice(0, caret);
  return unitsAt(before) ?? wordsAt(before, names);
}

function wordsAt(before, names) {
  const caret = before.length;
  const value = AFTER_OPERATOR.exec(before);
  if (value && (value[2] || !/^[\p{L}_]*\s/u.test(value[3])) && !closed(before, value)) {
    const found = valuesOf(value, names);
    if (found.choices.length > 0 || value[2]) return { start: caret - value[2].length - value[3].length, ...found };
  }
  if (insideText(before)) return { start: caret, choices: [] };
  const word = WORD.exec(before)?.[0] ?? "";
  if (!word && !BEGINS.test(before)) return { start: caret, choices: [] };
  return { start: caret - word.length, choices: namesLike(word.replaceAll('"', ""), names) };
}

/** Suggest the units that may follow the number that a text ends with; null where there is none. */
function unitsAt(before) {
  const behind = insideText(before) ? null : unitsBehind(before);
  if (!behind) return null;
  const choices = behind.units.map(([unit, words]) => ({ text: unit, words }));
  return { start: before.length - behind.begun.length, choices };
}

/** Return whether the quote before a value closes a text rather than opens one. */
function closed(before, value) {
  return insideText(before.slice(0, before.length - value[2].length - value[3].length));
}

function insideText(before) {
  return (before.replace(/"[^"]*"/g, "").split("'").length - 1) % 2 === 1;
}

function valuesOf(/** @type {any[]} */ [, name, , begun], names) {
  const property = name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
  const known = names.get(property);
  const wanted = begun.toLowerCase();
  const values = [...(known?.values ?? [])].filter(([value]) => String(value).toLowerCase().startsWith(wanted));
  values.sort(([, a], [, b]) => b - a);
  return {
    choices: [...values.slice(0, SHOWN), ...kindsBeside(property, wanted, known)].map(([value, count]) => ({
      text: literal(value),
      words: valueWords(property, value, count),
    })),
  };
}

/** Return the kinds that objects may have, besides those that some in view have, if the property is their kind. */
function kindsBeside(property, wanted, known) {
  if (property !== "kind") return [];
  return DECODED_KINDS.filter((kind) => kind.startsWith(wanted) && !known?.values.has(kind)).map((kind) => [kind, 0]);
}

function valueWords(name, value, count) {
  if (count === 0) return gettext("none in view");
  const have = filled(gettext("%(count)s have it"), { count });
  const shown = typeof value === "number" ? inBothUnits(name, value).split(" = ")[1] : "";
  return shown ? `${shown}, ${have}` : have;
}

function namesLike(begun, names) {
  const wanted = begun.toLowerCase();
  const place = (name) => name.toLowerCase().indexOf(wanted);
  const found = [...names].filter(([name]) => place(name) >= 0 && name !== begun);
  found.sort(([a, { count: p }], [b, { count: q }]) => Math.sign(place(a)) - Math.sign(place(b)) || q - p);
  return found.slice(0, SHOWN).map(([name, { values }]) => ({ text: written(name), words: exampleOf(name, values) }));
}

function exampleOf(name, values) {
  const [[most]] = [...values].sort(([, a], [, b]) => b - a);
  const value = typeof most === "number" ? inBothUnits(name, most) : literal(most).slice(0, 30);
  return filled(gettext("such as %(value)s"), { value });
}

/** Return what to send for a check of a filter: the names, and of each object the properties that the text may mean. */
export function sampleFor(text, { names, objects }) {
  const meant = [...names.keys()].filter((name) => text.includes(name) || text.includes(name.replaceAll('"', '""')));
  const rows = [];
  let room = MOST_CHARACTERS;
  for (const object of objects) {
    const row = Object.fromEntries(meant.filter((name) => name in object).map((name) => [name, object[name]]));
    room -= JSON.stringify(row).length;
    if (room < 0) break;
    rows.push(row);
  }
  return { where: text, names: [...names.keys()], objects: rows };
}

/**
 * Return how to show a checked filter, `[tone, words]`; `whole` says whether all objects in view were looked at. Words about the unit
 * of a number in the `text` that was typed follow if the page shows another one.
 */
export function verdict({ error, matches, of, unknown }, whole, text = "") {
  if (error) return ["bad", plainly(error)];
  const [first] = unknown;
  if (first) {
    const none = filled(gettext("No object in view has %(name)s."), { name: first.name });
    return [
      "warn",
      first.nearest ? `${none} ${filled(gettext("Did you mean %(name)s?"), { name: first.nearest })}` : none,
    ];
  }
  if (of === 0) return ["", gettext("No object of this stream is in view, so the filter cannot be tried.")];
  const words = whole
    ? gettext("Matches %(matches)s of %(of)s in view now.")
    : gettext("Matches %(matches)s of %(of)s looked at in view.");
  return ["", [filled(words, { matches, of }), plainText(text)].filter(Boolean).join(" ")];
}

/** Return a filter's error without the name of its field, beside which it is shown; leave other errors as they are. */
export function plainly(error) {
  const [, text] = /^(?:join: )?where: (.*)$/.exec(error) ?? [];
  return text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}.` : error;
}
