import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { csvText, guarded } from "../../static/js/csv.js";

const CASES = JSON.parse(readFileSync(new URL("../csv_cells.json", import.meta.url), "utf8"));

/** Read CSV (RFC 4180) as a program does. */
function read(text) {
  const rows = [];
  let row = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

test("a text that a spreadsheet would run begins with an apostrophe, as in the CSV of the server", () => {
  for (const [text, told] of CASES) assert.equal(guarded(text), told, JSON.stringify(text));
});

test("headings and cells are guarded, and read back as they were written", () => {
  const texts = CASES.map(([text]) => text);
  const told = CASES.map(([, cell]) => cell);
  assert.deepEqual(read(csvText(texts, [texts, texts])), [told, told, told]);
});

test("negative numbers stay numbers, and a missing value is empty", () => {
  assert.equal(csvText(["speed"], [[-2.5], [null], ["-2.5"], [-0.001]]), "speed\r\n-2.5\r\n\r\n-2.5\r\n-0.001\r\n");
});
