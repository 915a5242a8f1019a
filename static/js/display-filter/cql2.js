// Parses a filter as the server does (streaming/cql2.py): CQL2 text into a tree, or one sentence about what is wrong. Pure.
//
// OGC 21-065r2, Common Query Language (CQL2), 2024: Annex B, the text encoding; the tree is that of its JSON encoding.

import { filled, gettext } from "../i18n.js";

const MOST_CHARACTERS = 2000;

const MOST_BRACKETS = 400; // unlike the server's, this parser recurs

export class FilterError extends Error {}

const NO_VALUE = gettext(
  "a value is expected at character %(at)s: a number, a text in single quotes, or the name of a property; got %(got)s",
);
const MISPLACED = gettext("an operator such as =, < or AND is expected at character %(at)s; got %(got)s");
const MISPLACED_NAME = gettext(
  'an operator such as =, < or AND is expected at character %(at)s; got %(got)s (a name with spaces needs "double quotes")',
);
const NOT_CLOSED = gettext("the %(sign)s at character %(at)s is not closed");
const HABITS = { "==": "=", "&&": "AND", "||": "OR", "!": "NOT" };
const KEYWORDS = /^(and|or|not|like|between|in|is|null|true|false)$/i;
const NEAR_KEYWORDS = ["AND", "OR", "LIKE", "BETWEEN", "IN", "IS"];
/** @type {[string, RegExp][]} */
const TOKENS = [
  ["number", /(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?/iuy],
  ["text", /'(?:[^']|'')*'/uy],
  ["quoted", /"(?:[^"]|"")+"/uy],
  ["name", /[\p{L}\p{Nl}\p{No}_][\p{L}\p{N}_.:]*/uy],
  ["sign", /<>|!=|<=|>=|[=<>+\-*/%^(),]/uy],
];
const COMPARISONS = ["=", "<>", "!=", "<=", ">=", "<", ">"];
// Operators between values, the loosest first; each associates to the left.
const ARITHMETIC = [["+", "-"], ["*", "/", "%"], ["^"]];

/**
 * Return the tree of a filter: a node has `op` and `args`, or `property`; a leaf is a number, a text, true, false or null.
 *
 * @throws {FilterError} if the text is too long or does not parse; the message says at which character, counted from 1
 */
export function parseText(text) {
  const length = [...text].length;
  if (length > MOST_CHARACTERS)
    throw new FilterError(
      filled(gettext("where must have at most %(most)s characters; got %(length)s"), { most: MOST_CHARACTERS, length }),
    );
  return new Parser(text).parse();
}

/** Return the token of a filter that begins at an offset, after spaces: `{kind, text, start, end}`. */
export function tokenAt(text, from) {
  const start = from + text.slice(from).search(/\S|$/u);
  if (start >= text.length) return { kind: "end", text: "", start: text.length, end: text.length };
  for (const [kind, pattern] of TOKENS) {
    pattern.lastIndex = start;
    const found = pattern.exec(text);
    if (found) return { kind, text: found[0], start, end: start + found[0].length };
  }
  return { kind: "odd", text: text[start], start, end: start + 1 };
}

class Parser {
  constructor(text) {
    this.text = text;
    this.opened = []; // offsets of the brackets that are open
    this.token = tokenAt(text, 0);
  }

  parse() {
    const tree = this.#any();
    if (this.token.kind !== "end") this.#reject(false);
    return tree;
  }

  #any() {
    return this.#chain("or", () => this.#chain("and", () => this.#not()));
  }

  #chain(word, part) {
    const parts = [part()];
    while (this.#takes(word)) parts.push(part());
    return parts.length === 1 ? parts[0] : { op: word, args: parts };
  }

  #not() {
    let negations = 0;
    while (this.#takes("not")) negations++;
    let node = this.#predicate();
    for (; negations > 0; negations--) node = negated(node);
    return node;
  }

  #predicate() {
    const left = this.#sum();
    const sign = this.token.kind === "sign" && COMPARISONS.includes(this.token.text) ? this.token.text : null;
    if (sign) {
      this.#next();
      return { op: sign === "!=" ? "<>" : sign, args: [left, this.#sum()] };
    }
    if (this.#takes("is")) {
      const not = this.#takes("not");
      if (!this.#takes("null")) this.#reject(false);
      return not ? negated({ op: "isNull", args: [left] }) : { op: "isNull", args: [left] };
    }
    const not = this.#takes("not");
    const node = this.#wordy(left);
    if (!node && not) this.#reject(false);
    return node ? (not ? negated(node) : node) : left;
  }

  /** Return the node of LIKE, BETWEEN or IN after a value; null if none of them follows. */
  #wordy(left) {
    if (this.#takes("like")) return { op: "like", args: [left, this.#sum()] };
    if (this.#takes("in")) {
      this.#bracket(false);
      return { op: "in", args: [left, this.#list()] };
    }
    if (!this.#takes("between")) return null;
    const low = this.#sum();
    if (!this.#takes("and")) this.#reject(false);
    return { op: "between", args: [left, low, this.#sum()] };
  }

  /** Return a value; `level` is that of the loosest operator that it may have. */
  #sum(level = 0) {
    if (level === ARITHMETIC.length) return this.#unary();
    let left = this.#sum(level + 1);
    while (this.token.kind === "sign" && ARITHMETIC[level].includes(this.token.text)) {
      const op = this.token.text;
      this.#next();
      left = { op, args: [left, this.#sum(level + 1)] };
    }
    return left;
  }

  #unary() {
    const signs = [];
    while (this.token.kind === "sign" && ARITHMETIC[0].includes(this.token.text)) {
      signs.push(this.token.text);
      this.#next();
    }
    let node = this.#atom();
    for (const sign of signs.reverse())
      if (sign === "-") node = typeof node === "number" ? -node : { op: "*", args: [-1, node] };
    return node;
  }

  #atom() {
    const { kind, text } = this.token;
    if (kind === "sign" && text === "(") {
      this.#bracket(true);
      const inner = this.#any();
      this.#close();
      return inner;
    }
    if (!["number", "text", "quoted", "name"].includes(kind)) this.#reject(true);
    this.#next();
    if (kind === "number") return Number(text);
    if (kind === "text") return text.slice(1, -1).replaceAll("''", "'");
    if (kind === "quoted") return { property: text.slice(1, -1).replaceAll('""', '"') };
    const word = text.toLowerCase();
    if (word === "true" || word === "false") return word === "true";
    if (word === "null") return null;
    if (this.token.kind !== "sign" || this.token.text !== "(") return { property: text };
    this.#bracket(true);
    return { op: word, args: this.#list() };
  }

  /** Return the values up to the closing bracket. */
  #list() {
    const values = [this.#sum()];
    while (this.token.kind === "sign" && this.token.text === ",") {
      this.#next();
      values.push(this.#sum());
    }
    this.#close();
    return values;
  }

  #bracket(value) {
    if (this.token.text !== "(") this.#reject(value);
    if (this.opened.push(this.token.start) > MOST_BRACKETS)
      throw new FilterError(
        filled(gettext("where must not have more than %(most)s open brackets"), { most: MOST_BRACKETS }),
      );
    this.#next();
  }

  #close() {
    if (this.token.text !== ")") this.#reject(false);
    this.opened.pop();
    this.#next();
  }

  #is(word) {
    return this.token.kind === "name" && this.token.text.toLowerCase() === word;
  }

  #takes(word) {
    if (!this.#is(word)) return false;
    this.#next();
    return true;
  }

  #next() {
    this.token = tokenAt(this.text, this.token.end);
  }

  /** Say why the present token cannot be where it is; `values` tells whether a value could. */
  #reject(values) {
    throw new FilterError(`where: ${this.#explained(values)}`);
  }

  #explained(values) {
    const { kind, text, start } = this.token;
    const at = (offset) => [...this.text.slice(0, offset)].length + 1;
    if (kind === "end") return this.#unfinished(values);
    const told = { at: at(start), got: this.#word() };
    const misplaced = () => filled(this.#named() ? MISPLACED_NAME : MISPLACED, told);
    if (["'", '"'].includes(this.text[start]))
      return values && kind === "odd" ? filled(NOT_CLOSED, { ...told, sign: this.text[start] }) : misplaced();
    const near = Math.max(0, start - 1);
    const habit = Object.keys(HABITS).find(
      (one) => this.text.startsWith(one, start) || this.text.startsWith(one, near),
    );
    if (habit)
      return filled(gettext("write %(sign)s instead of %(habit)s at character %(at)s"), {
        sign: HABITS[habit],
        habit,
        at: at(this.text.indexOf(habit, near)),
      });
    if (text === ")" && !values) return filled(gettext("the ) at character %(at)s closes no bracket"), told);
    return values ? filled(NO_VALUE, told) : misplaced();
  }

  #unfinished(values) {
    const at = [...this.text].length + 1;
    if (!this.text.trim()) return gettext("a condition is missing");
    if (values)
      return filled(
        gettext(
          "a value is missing at the end, character %(at)s: a number, a text in single quotes, or the name of a property",
        ),
        { at },
      );
    if (this.opened.length > 0)
      return filled(NOT_CLOSED, { sign: "(", at: [...this.text.slice(0, this.opened.at(-1))].length + 1 });
    return filled(gettext("something is missing at the end, character %(at)s"), { at });
  }

  #named() {
    const { kind, text, start } = this.token;
    return (
      kind === "name" &&
      !KEYWORDS.test(text) &&
      /[\p{L}\p{N}]$/u.test(this.text.slice(0, start).trimEnd()) &&
      !NEAR_KEYWORDS.some((word) => word.startsWith(text.toUpperCase()))
    );
  }

  #word() {
    return [...this.text.slice(this.token.start).split(/\s/u)[0]].slice(0, 30).join("");
  }
}

function negated(node) {
  return { op: "not", args: [node] };
}
