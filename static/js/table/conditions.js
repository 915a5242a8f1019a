// What the user writes to filter the table: a text for all columns, and a condition for one. Pure.

import { filled, gettext } from "../i18n.js";
import { aboutColumn, HEARD } from "./columns.js";
import { converted, unitsOf } from "../quantities.js";

const CONDITION = /^\s*(>=|<=|<>|>|<|=)?\s*(.*?)\s*$/s;
const NUMBER = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(\S*)$/i;
const SECONDS = { "": 1, s: 1, min: 60, h: 3600, d: 86_400 };
const COMPARE = {
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
};

/**
 * Read a condition for a column: ">5", "<=3", "=7", "<>7", "=cargo", or a part of the text.
 *
 * @returns {Record<string, any>} `{error}`, in words, or `{passes(columns, slot)}`; null for no condition
 */
export function readCondition(name, written) {
  const [, sign = "", rest] = CONDITION.exec(written);
  if (!sign && !rest) return null;
  if (!rest) return { error: filled(gettext("Write a value after %(sign)s"), { sign }) };
  const { amount, slack } = numberOf(name, rest) ?? { amount: null, slack: 0 };
  if (sign in COMPARE) {
    if (amount === null) return { error: numberError(name, sign) };
    const holds = COMPARE[sign];
    // A comparison with NaN is false, so objects without a number do not pass.
    return { passes: (columns, slot) => holds(columns.number(name, slot) - amount) };
  }
  const contains = pattern(rest);
  const equal = pattern(rest, true);
  if (!sign) return { passes: (columns, slot) => contains.test(textIn(columns, name, slot)) };
  const same = (columns, slot) =>
    (amount !== null && Math.abs(columns.number(name, slot) - amount) <= slack) ||
    equal.test(textIn(columns, name, slot));
  return { passes: sign === "=" ? same : (columns, slot) => !same(columns, slot) };
}

/**
 * Read a text that is searched for in some columns: each of its words must be in one of them.
 *
 * @returns {function} `(columns, slot) => boolean`; null for no text
 */
export function readSearch(text, names) {
  const words = text
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => pattern(word));
  if (words.length === 0) return null;
  return (columns, slot) => words.every((word) => names.some((name) => word.test(textIn(columns, name, slot))));
}

function numberOf(name, text) {
  const [, digits, unit] = NUMBER.exec(text) ?? [];
  if (digits === undefined) return null;
  const number = Number(digits);
  if (name === HEARD) return Object.hasOwn(SECONDS, unit) ? { amount: number * SECONDS[unit], slack: 0 } : null;
  const shown = aboutColumn(name).unit;
  if (unitsOf(name)) return converted(name, number, unit || shown);
  return unit === "" || unit === shown ? { amount: number, slack: 0 } : null;
}

/** Return a condition as an address holds it: with its unit, if that is not the unit of the column's values. */
export function toAddress(name, written) {
  return withUnit(name, written, unitsOf(name)?.shown);
}

/** Return a condition of an address as the page shows it: with its unit, if the page shows another one. */
export function fromAddress(name, written) {
  return withUnit(name, written, unitsOf(name)?.own);
}

function withUnit(name, written, unit) {
  const [, sign = "", rest] = CONDITION.exec(written);
  const { own, shown } = unitsOf(name) ?? {};
  return own === shown || !sign || NUMBER.exec(rest)?.[2] !== "" ? written : `${written.trim()} ${unit}`;
}

function numberError(name, sign) {
  if (name === HEARD) return filled(gettext("Write a number after %(sign)s, in s, min, h or d"), { sign });
  const { unit } = aboutColumn(name);
  return filled(
    unit ? gettext("Write a number after %(sign)s, in %(unit)s") : gettext("Write a number after %(sign)s"),
    { sign, unit },
  );
}

/** Return what of a value a text is looked for in; nothing of a place, whose parts are other columns. */
function textIn(columns, name, slot) {
  const text = columns.text(name, slot);
  if (text !== null) return text;
  const number = name.startsWith("@") ? NaN : columns.number(name, slot);
  return !Number.isNaN(number) ? String(number) : "";
}

function pattern(text, whole = false) {
  const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(whole ? `^${escaped}$` : escaped, "iu");
}
