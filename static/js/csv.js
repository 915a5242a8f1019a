// Writes CSV (RFC 4180) without a cell that a spreadsheet runs: the one writer of the page. Pure.
// streaming/csv_text.py writes the same for the server, and says why.

const AHEAD = String.raw`[\x00-\x20\x85\s\ufeff"']*`;
const SIGNS = String.raw`=+\-@\uff1d\uff0b\uff0d\uff20`;
const FIRST = new RegExp(`^${AHEAD}[${SIGNS}\\t\\r\\n]`);
const FORMULA = new RegExp(`^${AHEAD}[${SIGNS}]`);
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

export const CSV = "text/csv";

/** Return headings and rows as CSV. A cell is a number, a text, or null for none. */
export function csvText(headings, rows) {
  return [headings, ...rows].map((cells) => `${cells.map(written).join(",")}\r\n`).join("");
}

/** Return a text with an apostrophe before each place where a spreadsheet would begin a formula. */
export function guarded(text) {
  const begun = FIRST.test(text) && !NUMBER.test(text) ? "'" : "";
  const [first, ...others] = text.split(/([;\t\r\n])/);
  return begun + first + others.map((part) => (FORMULA.test(part) && !NUMBER.test(part) ? `'${part}` : part)).join("");
}

function written(cell) {
  const text = typeof cell === "string" ? guarded(cell) : String(cell ?? "");
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
