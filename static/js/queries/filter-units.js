// Units in filters. A plan has numbers in the units of the properties; who writes a filter may put another unit behind a number. Pure.

import { FilterError, tokenAt } from "../display-filter/cql2.js";
import { filled, gettext } from "../i18n.js";
import { fromOwn, measureOf, shownUnit, toOwn, unitNamed, UNITS, writableIn } from "../quantities.js";

const UNIT = new RegExp(`\\s*(${UNITS.join("|")})(?![\\p{L}\\p{N}_/])`, "iuy");
const WORDS = ["and", "or", "not", "like", "between", "in", "is", "null", "true", "false"];
const COMPARISONS = ["=", "<>", "!=", "<=", ">=", "<", ">"];
const SHOWN_DIGITS = 4;

/**
 * Numbers that were rounded for the eye, so that they are read again as they were.
 *
 * @typedef {Map<string, number>} Exact
 */

/** Return the text of a filter as the page shows it: with numbers in the units that the page shows. */
export function shownFilter(where, /** @type {Exact} */ exact = new Map()) {
  return replaced(where, ({ number, unit, name, plain }) => {
    const measure = measureOf(name);
    if (unit || !plain || !measure) return null;
    const shown = shownUnit(measure);
    if (shown === measure.own) return null;
    const [own, few] = [Number(number.text), fromOwn(measure, Number(number.text), shown)];
    const back = toOwn(measure, few, shown) === own;
    const written = back ? few : Number(few.toPrecision(SHOWN_DIGITS));
    const text = `${written} ${shown}`;
    if (!back) exact.set(`${name} ${text}`, own);
    return text;
  });
}

/**
 * Return the text of a filter as a plan has it, for one in which numbers may have units.
 *
 * @throws {FilterError} if a unit stands where nothing can be measured in it
 */
export function planFilter(text, /** @type {Exact} */ exact = new Map()) {
  return replaced(text, ({ number, unit, name }) => {
    if (!unit) return null;
    const measure = measureOf(name);
    const known = measure && unitNamed(measure, unit);
    if (!measure || !known) throw new FilterError(`where: ${faultOf(name, measure, `${number.text} ${unit}`)}`);
    const amount = Number(number.text);
    return String(exact.get(`${name} ${amount} ${known}`) ?? toOwn(measure, amount, known));
  });
}

/** Say in which unit the first number of a filter is that has none, if the page shows another one; else "". */
export function plainText(text) {
  for (const { number, unit, name, plain } of numbersOf(text)) {
    const measure = measureOf(name);
    const shown = measure && shownUnit(measure);
    if (unit || !plain || !measure || shown === measure.own) continue;
    const words = gettext("%(name)s is in %(own)s: %(figures)s. You can write %(example)s.");
    const example = `${number.text} ${shown}`;
    return filled(words, { name, own: measure.own, figures: inBothUnits(name, Number(number.text)), example });
  }
  return "";
}

/** Return the number of a property in its own unit and, if it differs, in that which the page shows: "5 m/s = 9.719 kn". */
export function inBothUnits(name, number) {
  const measure = measureOf(name);
  if (!measure) return String(number);
  const shown = shownUnit(measure);
  const own = `${number} ${measure.own}`;
  return shown === measure.own ? own : `${own} = ${rounded(measure, number, shown)}`;
}

/** Return the units that may be written behind the number that a text ends with: `{begun, units: [[unit, words], ...]}`; null elsewhere. */
export function unitsBehind(text) {
  const [, before = "", begun = ""] = /^(.*[\d.]\s+)([\p{L}\u00b0\u002f]*)$/su.exec(text) ?? [];
  const last = numbersOf(before).at(-1);
  const measure = last && !last.unit && last.end === before.trimEnd().length ? measureOf(last.name) : null;
  if (!last || !measure) return null;
  const first = shownUnit(measure);
  const order = [first, ...writableIn(measure).filter((unit) => unit !== first)];
  const words = (unit) =>
    unit === measure.own ? "" : `= ${rounded(measure, Number(last.number.text), measure.own, unit)}`;
  const units = order.filter((unit) => unit.startsWith(begun)).map((unit) => [unit, words(unit)]);
  return units.length > 0 && !order.includes(begun) ? { begun, units } : null;
}

/** Return a number of a measure that is in the unit `from`, as text in the unit `to`. */
function rounded(measure, number, to, from = measure.own) {
  return `${Number(fromOwn(measure, toOwn(measure, number, from), to).toPrecision(SHOWN_DIGITS))} ${to}`;
}

function faultOf(name, measure, got) {
  if (!name) return filled(gettext("a unit needs a property that is compared with it; got %(got)s"), { got });
  return measure
    ? filled(gettext("%(name)s is in %(own)s, so it cannot be compared with %(got)s"), { name, own: measure.own, got })
    : filled(gettext("%(name)s does not say its unit, so it cannot be compared with %(got)s"), { name, got });
}

/** Return a text in which each number for which `by` returns a text is replaced by it, with its unit. */
function replaced(text, by) {
  let [result, from] = ["", 0];
  for (const found of numbersOf(text)) {
    const written = by(found);
    if (written === null) continue;
    result += text.slice(from, found.number.start) + written;
    from = found.end;
  }
  return result + text.slice(from);
}

/**
 * Return the numbers of a filter: `number`, its token, with the sign; `unit`, what is written behind it, or ""; `end`, of both;
 * `name`, the property with which it is compared, or ""; `plain`, whether neither is part of a calculation.
 */
function numbersOf(text) {
  const conditions = conditionsOf(tokensOf(text));
  return conditions.flatMap((tokens) => {
    const names = tokens.filter(({ kind }) => kind === "property");
    const plain = !tokens.some(({ kind, text: sign }) => kind === "sign" && "+-*/%^".includes(sign));
    return tokens.flatMap((token, i) => {
      if (token.kind !== "number") return [];
      const before = names.findLast(({ start }) => start < token.start);
      const unit = tokens[i + 1]?.kind === "unit" ? tokens[i + 1] : null;
      const name = (before ?? names[0])?.name ?? "";
      return [{ number: token, unit: unit?.text ?? "", end: (unit ?? token).end, name, plain }];
    });
  });
}

/** Return the tokens of each condition: between AND, OR and NOT, but for the AND of BETWEEN. */
function conditionsOf(tokens) {
  const conditions = /** @type {Record<string, any>[][]} */ ([[]]);
  let between = false;
  for (const token of tokens) {
    const word = token.kind === "word" ? token.text.toLowerCase() : "";
    if (word === "or" || (word === "and" && !between)) conditions.push([]);
    else conditions[conditions.length - 1].push(token);
    between = word === "between" || (between && word !== "and" && word !== "or");
  }
  return conditions;
}

/** Return the tokens of a filter; a minus that belongs to a number is part of it. */
function tokensOf(text) {
  const tokens = /** @type {Record<string, any>[]} */ ([]);
  for (let token = tokenAt(text, 0); token.kind !== "end"; token = tokenAt(text, token.end)) {
    const last = tokens.at(-1);
    if (token.kind === "number") {
      const signed = last?.text === "-" && isUnary(tokens.at(-2));
      if (signed) tokens.pop();
      const number = signed ? { ...token, text: `-${token.text}`, start: last?.start } : token;
      tokens.push(number);
      UNIT.lastIndex = token.end;
      const unit = UNIT.exec(text);
      if (unit) {
        token = { kind: "unit", text: unit[1], start: token.end, end: UNIT.lastIndex };
        tokens.push(token);
      }
    } else tokens.push(named(text, token));
  }
  return tokens;
}

/** Whether a sign behind a token belongs to the number that follows. */
function isUnary(/** @type {Record<string, any> | undefined} */ before) {
  return !before || before.kind === "word" || [...COMPARISONS, "(", ","].includes(before.text);
}

/** Return a token as a word, a property with its name, or as it is. */
function named(text, token) {
  if (token.kind === "quoted")
    return { ...token, kind: "property", name: token.text.slice(1, -1).replaceAll('""', '"') };
  if (token.kind !== "name") return token;
  if (WORDS.includes(token.text.toLowerCase()) || tokenAt(text, token.end).text === "(")
    return { ...token, kind: "word" };
  return { ...token, kind: "property", name: token.text };
}
