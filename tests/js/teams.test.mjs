import assert from "node:assert/strict";
import { test } from "node:test";

import { createStore } from "../../static/js/store/store.js";
import { mayEdit, mayShare, sharedText, teamChoices, teamOf } from "../../static/js/teams/rights.js";

function inTeams(...teams) {
  const store = createStore();
  store.apply({ type: "hello", user: "ann", server_time_us: 0, streams: [], teams }, 0);
  return store;
}
const [VIEWER, ANALYST, ADMIN] = ["viewer", "analyst", "admin"].map((role, i) => ({ team: i + 1, name: role, role }));

test("a user edits what is theirs, and as an analyst or an admin what is the team's", () => {
  const store = inTeams(VIEWER, ANALYST, ADMIN);
  const edits = [null, 1, 2, 3, 9].map((team) => mayEdit(store, { mine: false, team }));
  assert.deepEqual(edits, [false, false, true, true, false]);
  assert.ok(mayEdit(store, { mine: true, team: 1 }));
});

test("only an owner or an admin chooses who sees something", () => {
  const store = inTeams(VIEWER, ANALYST, ADMIN);
  assert.deepEqual(
    [1, 2, 3].map((team) => mayShare(store, { mine: false, team })),
    [false, false, true],
  );
  assert.ok(mayShare(store, { mine: true, team: null }));
});

test("the teams in which a user may create something are offered, and the one that is chosen", () => {
  const store = inTeams(VIEWER, ANALYST);
  assert.deepEqual(teamChoices(store), [["2", "analyst"]]);
  assert.deepEqual(teamChoices(store, 1), [
    ["1", "viewer"],
    ["2", "analyst"],
  ]);
  assert.deepEqual([teamOf("2"), teamOf("")], [2, null]);
});

test("teams that the server tells anew replace the former ones", () => {
  const store = inTeams(ADMIN);
  let told = 0;
  store.on("teams", () => told++);
  store.apply({ type: "team.list", teams: [] }, 0);
  assert.deepEqual([store.teams.size, told], [0, 1]);
  assert.equal(mayEdit(store, { mine: false, team: 3 }), false);
});

test("it is said with whom something is shared", () => {
  const store = inTeams(VIEWER);
  assert.equal(sharedText(store, { team: 1, shared: true }), "team viewer, all users");
  assert.equal(sharedText(store, { team: null }), "");
  assert.equal(sharedText(store, { team: 9 }), "team number 9");
});
