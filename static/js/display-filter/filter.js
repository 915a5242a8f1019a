// Evaluates a filter over the properties of objects as the server does (streaming/filters.py). Pure.
//
// The logic is three-valued: a comparison with a property that is missing is unknown (null), which counts as false in the end.

import { filled, gettext } from "../i18n.js";
import { tokenReader } from "../objects/property-text.js";
import { FilterError, parseText } from "./cql2.js";

const MOST_LEVELS = 40;
const MOST_PROPERTIES = 32;
const NAME = /^[^"\\]{1,200}$/u;
// What a text may be that counts as a number, as polars casts it.
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const NAMED_NUMBERS = /^([+-]?)(inf|infinity|nan)$/i;
const LIKE = { "%": ".*", _: "." };

// NaN equals itself and is larger than every other number, as polars orders it.
const order = (a, b) =>
  Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : a < b ? -1 : a > b ? 1 : 0;
const COMPARE = {
  "=": (sign) => sign === 0,
  "<>": (sign) => sign !== 0,
  "<": (sign) => sign < 0,
  "<=": (sign) => sign <= 0,
  ">": (sign) => sign > 0,
  ">=": (sign) => sign >= 0,
};
const ARITHMETIC = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "%": (a, b) => a - b * Math.floor(a / b), // the sign is that of the divisor
  "^": (a, b) => a ** b,
};

/**
 * Compile a filter into a function that tells for a JSON text of properties whether the filter holds.
 *
 * @throws {FilterError} if the text does not parse, or is something that the server would refuse
 */
export function compileFilter(text) {
  const tree = parseText(text);
  const levels = depthOf(tree);
  if (levels > MOST_LEVELS)
    throw new FilterError(
      filled(gettext("where must not nest more than %(most)s levels; got %(levels)s"), { most: MOST_LEVELS, levels }),
    );
  const names = new Set();
  const holds = new Compiler(names).condition(tree);
  if (names.size > MOST_PROPERTIES)
    throw new FilterError(
      filled(gettext("where may name at most %(most)s properties; got %(names)s"), {
        most: MOST_PROPERTIES,
        names: names.size,
      }),
    );
  const test = (properties) => holds(properties) === true;
  return Object.assign(test, { names: [...names] });
}

/** Return a token of JSON as a number; null where it is none. */
function numberOf(token) {
  if (token === undefined) return null;
  if (token[0] !== '"') return token === "true" || token === "false" || "[{".includes(token[0]) ? null : Number(token);
  const text = textOf(token);
  if (NUMBER.test(text)) return Number(text);
  const [, sign, name] = NAMED_NUMBERS.exec(text) ?? [];
  if (!name) return null;
  return name.toLowerCase() === "nan" ? NaN : sign === "-" ? -Infinity : Infinity;
}

/** Return a token of JSON as text; null where there is none. */
function textOf(token) {
  if (token === undefined) return null;
  if (token[0] !== '"') return token;
  return token.includes("\\") ? JSON.parse(token) : token.slice(1, -1);
}

/** Compare texts by their code points. */
function textOrder(a, b) {
  if (a === b) return 0;
  const [left, right] = [[...a], [...b]];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
  }
  return left.length - right.length;
}

/** Makes functions of a JSON text from nodes. `names` collects the properties that they read. */
class Compiler {
  constructor(names) {
    this.names = names;
  }

  /** Return a function that returns true, false, or null for unknown. */
  condition(node) {
    if (typeof node === "boolean") return () => node;
    if (!isNode(node))
      throw new FilterError(filled(gettext("where must be a condition; got the value %(got)s"), { got: shown(node) }));
    if ("property" in node) return this.#flag(node);
    const { op, args } = node;
    if (op in COMPARE) return this.#comparison(op, ...args);
    if (op === "and" || op === "or")
      return joined(
        op === "or",
        args.map((arg) => this.condition(arg)),
      );
    if (op === "not") return negated(this.condition(args[0]));
    if (op === "in") return this.#member(...args);
    if (op === "between")
      return joined(false, [this.#comparison(">=", args[0], args[1]), this.#comparison("<=", args[0], args[2])]);
    if (op === "like") return this.#like(...args);
    if (op === "isNull") return this.#missing(args[0]);
    const operators = [...Object.keys(COMPARE), "and", "between", "in", "isNull", "like", "not", "or"]
      .sort()
      .join(", ");
    throw new FilterError(
      filled(gettext("where knows the operators %(operators)s; got '%(got)s'"), { operators, got: op }),
    );
  }

  #comparison(op, left, right) {
    const compare = COMPARE[op];
    const numbers = () => compared(compare, order, this.#number(left), this.#number(right));
    if (isNumeric(left) || isNumeric(right)) return numbers();
    if (typeof left === "boolean" || typeof right === "boolean")
      return compared(compare, (a, b) => a - b, this.#flag(left), this.#flag(right));
    const texts = compared(compare, textOrder, this.#text(left), this.#text(right));
    if (!isProperty(left) || !isProperty(right)) return texts;
    const asNumbers = numbers();
    return (properties) => asNumbers(properties) ?? texts(properties);
  }

  #member(value, choices) {
    const textual = typeof value === "string" || (isNode(value) && !isNumeric(value));
    const isText = (choice) => typeof choice === "string" && textual;
    const numbers = choices.filter((choice) => typeof choice === "number").map(finite);
    const texts = new Set(choices.filter(isText));
    const found = choices
      .filter((choice) => typeof choice !== "number" && !isText(choice))
      .map((choice) => this.#comparison("=", value, choice));
    if (numbers.length > 0)
      found.push(within(this.#number(value), (number) => numbers.some((one) => order(one, number) === 0)));
    if (texts.size > 0) found.push(within(this.#text(value), (text) => texts.has(text)));
    return joined(true, found);
  }

  #like(value, pattern) {
    const folded = isNode(pattern) && pattern.op === "casei";
    const literal = folded ? pattern.args[0] : pattern;
    if (typeof literal !== "string") wrong(gettext("LIKE needs a text as its pattern; got %(got)s"), shown(literal));
    const source = [...literal]
      .map((character) => LIKE[character] ?? character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&"))
      .join("");
    const regex = new RegExp(`^(?:${source})$`, folded ? "isu" : "su");
    return within(this.#text(value), (text) => regex.test(text));
  }

  #missing(node) {
    const text = this.#text(node);
    return (properties) => text(properties) === null;
  }

  #number(node) {
    if (typeof node === "number") {
      const number = finite(node);
      return () => number;
    }
    if (isProperty(node)) {
      const token = this.#token(node);
      return (properties) => numberOf(token(properties));
    }
    if (!isNumeric(node)) wrong(gettext("a number or a property is needed; got %(got)s"), shown(node));
    const [left, right] = node.args.map((arg) => this.#number(arg));
    return both(ARITHMETIC[node.op], left, right);
  }

  #text(node) {
    if (typeof node === "string") return () => node;
    if (isProperty(node)) {
      const token = this.#token(node);
      return (properties) => textOf(token(properties));
    }
    if (!isNode(node) || node.op !== "casei" || node.args.length !== 1)
      wrong(gettext("a text or a property is needed; got %(got)s"), shown(node));
    const inner = this.#text(node.args[0]);
    return (properties) => inner(properties)?.toLowerCase() ?? null;
  }

  #flag(node) {
    if (typeof node === "boolean") return () => node;
    if (!isProperty(node)) wrong(gettext("TRUE, FALSE or a property is needed; got %(got)s"), shown(node));
    const token = this.#token(node);
    return (properties) => ({ true: true, false: false })[textOf(token(properties))] ?? null;
  }

  #token({ property }) {
    if (!NAME.test(property))
      wrong(
        gettext(
          "a property's name must have at most 200 characters, and no double quotes or backslashes; got '%(got)s'",
        ),
        property,
      );
    this.names.add(property);
    return tokenReader(property);
  }
}

function both(combine, left, right) {
  return (properties) => {
    const [a, b] = [left(properties), right(properties)];
    return a === null || b === null ? null : combine(a, b);
  };
}

function compared(compare, ordered, left, right) {
  return both((a, b) => compare(ordered(a, b)), left, right);
}

function within(value, has) {
  return (properties) => {
    const found = value(properties);
    return found === null ? null : has(found);
  };
}

function negated(condition) {
  return (properties) => {
    const holds = condition(properties);
    return holds === null ? null : !holds;
  };
}

/** Join conditions by OR (`decisive` true) or AND (false): one that is `decisive` decides, whatever the others are. */
function joined(decisive, conditions) {
  return (properties) => {
    let result = /** @type {boolean | null} */ (!decisive);
    for (const condition of conditions) {
      const holds = condition(properties);
      if (holds === decisive) return decisive;
      if (holds === null) result = null;
    }
    return result;
  };
}

function isNode(node) {
  return typeof node === "object" && node !== null;
}

function isProperty(node) {
  return isNode(node) && "property" in node;
}

function isNumeric(node) {
  return typeof node === "number" || (isNode(node) && Object.hasOwn(ARITHMETIC, node.op ?? ""));
}

function finite(number) {
  if (Number.isFinite(number)) return number;
  return wrong(gettext("a number must be smaller than 1.8e308; got a larger one"));
}

/** Throw what is wrong with a part of a filter: `words` with what was got. */
function wrong(words, got) {
  throw new FilterError(`where: ${filled(words, { got })}`);
}

/** Return the number of levels of a tree. */
function depthOf(tree) {
  let [level, depth] = [[tree], 0];
  for (; level.length > 0; depth++) level = level.flat().flatMap((node) => (isNode(node) ? (node.args ?? []) : []));
  return depth;
}

function shown(node) {
  if (isNode(node)) return node.property ?? `${node.op.toUpperCase()}(...)`;
  return node === null
    ? "NULL"
    : typeof node === "boolean"
      ? String(node).toUpperCase()
      : typeof node === "string"
        ? `'${node}'`.slice(0, 40)
        : Number.isInteger(node)
          ? `${node}.0`
          : String(node);
}
