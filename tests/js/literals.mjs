// Reads the texts in a JavaScript source, each with the call and the code that it stands in. It knows comments, strings,
// templates and regular expressions, and no more of the grammar.

const CLOSING = { "(": ")", "[": "]", "{": "}" };
// After one of these a slash begins a regular expression; after anything else it divides.
const BEFORE_REGEX = /(^|[=(,:;!&|?{}[+\-*%<>~^]|\b(return|typeof|case|in|of|await|yield|=>))\s*$/;

/**
 * Return the texts of a source: `{text, line, before, after, callee, at, template}`. `text` is without quotes, with "\u0000" where
 * a template has a value; `before` and `after` are the code around it; `callee` is the name of the function of the innermost
 * brackets that it stands in, if they are those of a call, and `at` its place among the arguments.
 */
export function literalsOf(source) {
  return new Scanner(source).scan();
}

class Scanner {
  constructor(source) {
    Object.assign(this, { source, at: 0, found: [], stack: [], code: "" });
  }

  scan() {
    while (this.at < this.source.length) this.#step();
    for (const literal of this.found) literal.after = this.source.slice(literal.end, literal.end + 40);
    return this.found;
  }

  #step() {
    const { source, at } = this;
    const sign = source[at];
    if (source.startsWith("//", at)) this.#skip("\n", 0);
    else if (source.startsWith("/*", at)) this.#skip("*/", 2);
    else if (sign === "/" && BEFORE_REGEX.test(this.code.slice(-40))) this.#regex();
    else if (sign === '"' || sign === "'") this.#string(sign);
    else if (sign === "`") this.#template();
    else {
      if (sign in CLOSING) this.stack.push({ callee: sign === "(" ? nameBefore(this.code) : "", commas: 0 });
      else if (")]}".includes(sign)) this.stack.pop();
      else if (sign === "," && this.stack.length > 0) this.stack.at(-1).commas++;
      this.code += sign;
      this.at++;
    }
  }

  #skip(end, more) {
    const found = this.source.indexOf(end, this.at);
    this.at = found < 0 ? this.source.length : found + more;
  }

  #regex() {
    let inClass = false;
    for (this.at++; this.source[this.at] !== "/" || inClass; this.at++) {
      if (this.source[this.at] === "\\") this.at++;
      else if (this.source[this.at] === "[") inClass = true;
      else if (this.source[this.at] === "]") inClass = false;
      if (this.at >= this.source.length) throw new Error("a regular expression does not end");
    }
    this.at++;
    this.code += "0";
  }

  #string(quote) {
    const from = this.at;
    for (this.at++; this.source[this.at] !== quote; this.at++) if (this.source[this.at] === "\\") this.at++;
    this.at++;
    this.#keep(from, this.source.slice(from + 1, this.at - 1), false);
  }

  #template() {
    const from = this.at;
    const { code, stack } = this;
    const place = [...stack.map((one) => ({ ...one }))];
    let text = "";
    for (this.at++; this.source[this.at] !== "`";) {
      if (this.source.startsWith("${", this.at)) {
        text += "\u0000";
        this.#value();
      } else {
        if (this.source[this.at] === "\\") text += this.source[this.at++];
        text += this.source[this.at++];
      }
    }
    this.at++;
    Object.assign(this, { code, stack: place });
    this.#keep(from, text, true);
  }

  /** Scan the value within a template, up to the bracket that ends it. */
  #value() {
    this.at += 2;
    this.stack = [{ callee: "", commas: 0 }];
    this.code = "(";
    while (!(this.source[this.at] === "}" && this.stack.length === 1)) this.#step();
    this.at++;
  }

  #keep(from, text, template) {
    const { callee = "", commas = 0 } = this.stack.at(-1) ?? {};
    const line = this.source.slice(0, from).split("\n").length;
    this.found.push({ text, line, before: this.code.slice(-60), callee, at: commas, template, end: this.at });
    this.code += '""';
  }
}

function nameBefore(code) {
  return /([\w$#]+)\s*(\?\.)?$/.exec(code.slice(-60))?.[1] ?? "";
}
