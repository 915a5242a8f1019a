// Explanations in the words of the page.

import assert from "node:assert/strict";
import test from "node:test";

import { chooseUnits } from "../../static/js/units.js";
import {
  attemptText,
  borderText,
  deciding,
  deliveryText,
  heading,
  inUnits,
  joinedText,
  lagRows,
  lineTo,
  markOf,
  verdict,
} from "../../static/js/why/words.js";

const border = (distance_m, element, place) => ({ distance_m, element, place });
const AREA = {
  asks: "in a circle of 5,000 m",
  holds: false,
  found: "22 km outside",
  border: border(22_300, [25, 60.2], [25, 60]),
  decides: true,
};
const SPEED = { asks: "speed_mps > 5", holds: true, found: "speed_mps is 6" };
const WHY = { asks: "in the answer", holds: false, found: "", of: "all", parts: [SPEED, AREA] };

test("only the terms that decide are shown first", () => {
  assert.deepEqual(deciding(WHY), [AREA]);
  assert.deepEqual(deciding(SPEED), []);
});

test("a term is marked by a sign and by words", () => {
  assert.deepEqual(
    [true, false, null].map((holds) => markOf({ holds })[1]),
    ["holds", "does not hold", "not known"],
  );
  assert.equal(new Set([true, false, null].map((holds) => markOf({ holds })[0])).size, 3);
});

test("parts are joined by words if there are several, or if they are negated", () => {
  assert.equal(joinedText(WHY), "all of these");
  assert.equal(joinedText({ of: "all", parts: [SPEED] }), "");
  assert.equal(joinedText({ of: "not", parts: [SPEED] }), "not this");
});

test("the verdict says whether the object is in the answer, or which event it was", () => {
  assert.equal(verdict({ why: WHY }), "Not in the answer");
  assert.equal(verdict({ why: { holds: true } }), "In the answer");
  assert.equal(verdict({ why: { holds: null } }), "It cannot be known whether it is in the answer");
  assert.equal(verdict({ why: WHY, event: { sign: "-" } }), "Why it left");
  assert.equal(verdict({ why: WHY, event: { sign: "+" }, incident: 7 }), "Why the incident was opened");
  const alarm = { holds: true, found: "since 08:00:11 UTC" };
  assert.equal(
    heading({ why: alarm, event: { sign: "+" }, incident: 7 }),
    "Why the incident was opened. Alarm since 08:00:11 UTC.",
  );
  assert.equal(heading({ why: alarm }), "In the answer, since 08:00:11 UTC");
  assert.equal(heading({ why: { holds: true } }), "In the answer");
});

test("lengths of the server are shown in the chosen units, and nothing else is changed", () => {
  assert.equal(inUnits("22 km outside of 5,000 m, speed 5 m/s, 3 min"), "22 km outside of 5,000 m, speed 5 m/s, 3 min");
  chooseUnits("nautical");
  assert.equal(inUnits("18.52 km outside of 5,556 m, speed 5 m/s, 3 min"), "10 nm outside of 3 nm, speed 5 m/s, 3 min");
  chooseUnits("metric");
});

test("the line goes to the border that decides, the short way across the antimeridian", () => {
  assert.deepEqual(lineTo(WHY), { from: [25, 60.2], to: [25, 60], distanceM: 22_300 });
  const near = { ...AREA, decides: undefined, border: border(10, [179.9, 0], [-179.9, 0]) };
  const { to } = lineTo({ ...WHY, parts: [SPEED, near] });
  assert.ok(Math.abs(to[0] - 180.1) < 1e-9);
  assert.equal(lineTo(SPEED), null);
  assert.equal(borderText(-1500), "1.5 km inside");
});

test("each step on the way tells the time since the one before", () => {
  const rows = lagRows([
    { what: "reported", at: "2026-01-01T00:00:00Z" },
    { what: "heard", at: "2026-01-01T00:00:02.5Z" },
    { what: "told", at: "2026-01-01T00:00:02.4Z" },
  ]);
  assert.deepEqual(
    rows.map(({ after }) => after),
    ["", "+2.5 s", "100 ms before"],
  );
  assert.equal(rows[0].text, "Reported");
});

test("a delivery and its attempts are told in words", () => {
  const delivery = { what: "opened", channel: "hook", kind: "webhook", to: "ann", state: "sent", next: null };
  assert.equal(deliveryText(delivery), "opened to ann by hook (webhook): sent");
  assert.equal(
    attemptText({ outcome: "failed", status: 503, took_ms: 12, error: "busy" }),
    "failed, status 503, 12 ms, busy",
  );
  assert.equal(attemptText({ outcome: "interrupted", status: null, took_ms: null, error: "" }), "interrupted");
});
