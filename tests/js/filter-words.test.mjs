// What is offered while a filter is written, and how a checked one is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  literal,
  plainly,
  sampleFor,
  suggestions,
  verdict,
  vocabularyOf,
  written,
} from "../../static/js/queries/filter-words.js";

const SHIPS = [
  { speed_mps: 5, ship_type: "cargo", "my name": "Anna", moored: true },
  { speed_mps: 7, ship_type: "cargo", destination: "O'Hara" },
  { speed_mps: 7, ship_type: "tanker", destination: null, nested: { a: 1 } },
];
const vocabulary = vocabularyOf(SHIPS.map((ship) => JSON.stringify(ship)));
const offered = (text, caret = text.length) =>
  suggestions(text, caret, vocabulary).choices.map((choice) => choice.text);

test("names are offered from what was begun, those that begin so and are frequent first", () => {
  assert.deepEqual(offered(""), ["speed_mps", "ship_type", '"my name"', "moored", "destination"]);
  assert.deepEqual(offered("sp"), ["speed_mps"]);
  assert.deepEqual(offered("speed_mps > 5 AND ty"), ["ship_type"]);
  assert.deepEqual(offered('speed_mps > 5 AND "my'), ['"my name"']);
  assert.deepEqual(offered("NOT (dest"), ["destination"]);
  assert.deepEqual(offered("nes"), []);
  assert.deepEqual(offered("sped_mps > 5"), []);
  assert.deepEqual(offered("ship_type = 'cargo' "), []);
  assert.equal(offered("speed_mps > 5 AND ").length, 5);
});

test("values of the property are offered behind an operator, the frequent first", () => {
  assert.deepEqual(offered("ship_type = "), ["'cargo'", "'tanker'"]);
  assert.deepEqual(offered("ship_type = 'ta"), ["'tanker'"]);
  assert.deepEqual(offered("ship_type IN ('cargo', 't"), ["'tanker'"]);
  assert.deepEqual(offered("ship_type NOT IN ("), ["'cargo'", "'tanker'"]);
  assert.deepEqual(offered("speed_mps > "), ["7", "5"]);
  assert.deepEqual(offered("destination = 'O"), ["'O''Hara'"]);
  assert.deepEqual(offered("moored = "), ["TRUE"]);
  assert.deepEqual(offered('"my name" LIKE '), ["'Anna'"]);
});

test("a choice replaces what was begun, at the caret", () => {
  assert.equal(suggestions("speed_mps > 5 AND ship", 22, vocabulary).start, 18);
  assert.equal(suggestions("ship_type = 'ta", 15, vocabulary).start, 12);
  assert.deepEqual(offered("sp > 5 AND ship_type = 'x'", 2), ["speed_mps"]);
  assert.deepEqual(offered("ship_type = 'cargo' AND mo"), ["moored"]);
});

test("names and values are written as a filter has them", () => {
  assert.deepEqual(["a.b", "my name", 'a"b', "_a"].map(written), ["a.b", '"my name"', '"a""b"', '"_a"']);
  assert.deepEqual([5, "it's", false].map(literal), ["5", "'it''s'", "FALSE"]);
});

test("a check carries the properties that the text may mean, and all names", () => {
  const sample = sampleFor("speed_mps > 5", vocabulary);
  assert.deepEqual(sample.objects, [{ speed_mps: 5 }, { speed_mps: 7 }, { speed_mps: 7 }]);
  assert.ok(sample.names.includes("my name"));
  const wide = vocabularyOf(Array.from({ length: 900 }, () => JSON.stringify({ text: "x".repeat(100) })));
  assert.ok(JSON.stringify(sampleFor("text = 'x'", wide)).length < 64 * 1024);
});

test("a verdict says what is wrong, which name is unknown, or how many match", () => {
  const told = { error: null, matches: 43, of: 300, unknown: [] };
  assert.deepEqual(verdict(told, true), ["", "Matches 43 of 300 in view now."]);
  assert.deepEqual(verdict(told, false), ["", "Matches 43 of 300 looked at in view."]);
  const unknown = [{ name: "sped_mps", nearest: "speed_mps" }];
  assert.deepEqual(verdict({ ...told, unknown }, true), [
    "warn",
    "No object in view has sped_mps. Did you mean speed_mps?",
  ]);
  assert.deepEqual(verdict({ ...told, error: "where: the ( at character 5 is not closed" }, true), [
    "bad",
    "The ( at character 5 is not closed.",
  ]);
  assert.match(verdict({ ...told, of: 0 }, true)[1], /cannot be tried/);
  assert.equal(plainly("stream must be one of a; got b"), "stream must be one of a; got b");
});
