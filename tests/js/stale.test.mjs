import assert from "node:assert/strict";
import test from "node:test";

import { staleNote } from "../../static/js/queries/query-answer.js";
import { createStore } from "../../static/js/store/store.js";
import { NOW, SHIPS, hello, row, snapshot, status } from "./helpers.mjs";

test("an answer says as of when it is, while nothing new can come", () => {
  const store = createStore();
  store.setLink("open", NOW);
  const answer = { ...snapshot(1, row("+", "a", 1, 1)), lag_ms: 0 };
  for (const message of [hello(SHIPS), status(1), answer]) store.apply(message, NOW);
  assert.equal(staleNote(store, NOW), "");
  store.setLink("offline", NOW + 1000);
  assert.equal(staleNote(store, NOW + 60_000), "As of 12:00:00 UTC.");
});

test("an answer of which nobody says when its reports came is as of when the engine was heard last", () => {
  const store = createStore();
  store.setLink("open", NOW);
  const engine = { type: "engine.status", alive: true, lag_ms: null };
  const answer = { ...snapshot(1, row("+", "a", 1, 1)), lag_ms: null };
  for (const message of [hello(SHIPS), status(1), answer, engine]) store.apply(message, NOW);
  store.setLink("offline", NOW + 1000);
  assert.equal(staleNote(store, NOW + 60_000), "As of 12:00:00 UTC.");
});
