import assert from "node:assert/strict";
import { test } from "node:test";

import { planText } from "../../static/js/kinds/plan-text.js";
import { kindOf } from "../../static/js/kinds/registry.js";
import { errorsOfRule, fieldsOfRule, planOfRule } from "../../static/js/kinds/rule/fields.js";
import { alarmText, conditionText, duration, ruleSentences } from "../../static/js/kinds/rule/words.js";

const NAMES = { 7: "Harbour", 8: "Ferries", 9: "Approach" };
const nameOf = (number) => NAMES[number];
const FIELDS = fieldsOfRule({ stream: "ships", when: { query: 7 } });

test("fields become a plan, and the plan the same fields", () => {
  const fields = {
    ...FIELDS,
    also: 9,
    unless: 8,
    until: 9,
    forMin: 5,
    rearmMin: 10,
    scheduled: true,
    timeZone: "Europe/Berlin",
  };
  const plan = planOfRule(fields);
  assert.deepEqual(plan.when, { all: [{ query: 7 }, { query: 9 }, { not: { query: 8 } }] });
  assert.deepEqual([plan.for_s, plan.rearm_s, plan.until], [300, 600, { query: 9 }]);
  assert.deepEqual(fieldsOfRule(plan), fields);
  assert.equal(kindOf(plan).report, "rule");
});

test("a rule that counts has neither a duration nor another end", () => {
  const plan = planOfRule({ ...FIELDS, often: true, moreThan: 5, withinMin: 10, until: 9, forMin: 3 });
  assert.deepEqual(plan, {
    stream: "ships",
    kind: "rule",
    when: { query: 7 },
    rate: { more_than: 5, within_s: 600 },
    rearm_s: 0,
  });
});

test("what the fields cannot show is left to JSON", () => {
  assert.equal(fieldsOfRule({ stream: "ships", when: { any: [{ query: 7 }, { query: 8 }] } }), null);
  assert.equal(
    fieldsOfRule({ stream: "ships", when: { all: [{ query: 7 }, { not: { any: [{ query: 8 }] } }] } }),
    null,
  );
});

test("each field says what is wrong with it", () => {
  assert.deepEqual(errorsOfRule("a rule", { ...FIELDS, forMin: 5 }), {});
  const wrong = errorsOfRule("", {
    ...FIELDS,
    often: true,
    moreThan: 0.5,
    withinMin: 10,
    rearmMin: NaN,
    scheduled: true,
    days: [],
  });
  assert.deepEqual(Object.keys(wrong), ["name", "moreThan", "rearmMin", "days"]);
});

test("a rule in words", () => {
  const plan = planOfRule({ ...FIELDS, unless: 8, forMin: 5, rearmMin: 10 });
  assert.equal(
    ruleSentences(plan, nameOf),
    "An alarm begins when an object has been in Harbour and not in Ferries for 5 min without a break. It ends when that holds no more of the object. Then the same object has no other alarm for 10 min.",
  );
  const often = planOfRule({
    ...FIELDS,
    often: true,
    moreThan: 5,
    withinMin: 10,
    scheduled: true,
    days: ["mon"],
    from: "22:00",
    to: "06:00",
    timeZone: "UTC",
  });
  assert.match(
    ruleSentences(often, nameOf),
    /more than 5 times within 10 min.*on Monday from 22:00 to 06:00 of the next day \(UTC\)/,
  );
  assert.equal(
    planText(plan, (source, number) => nameOf(number)),
    "alarm if in Harbour and not in Ferries for 5 min",
  );
  assert.equal(
    conditionText({ any: [{ query: 7 }, { all: [{ query: 8 }, { not: { query: 9 } }] }] }, nameOf),
    "in Harbour or (in Ferries and not in Approach)",
  );
  assert.deepEqual([90, 120, 7200].map(duration), ["90 s", "2 min", "2 h"]);
});

test("a rule about the whole answer", () => {
  const fields = { ...FIELDS, whole: true, limit: "none", objects: 20, forMin: 10 };
  const plan = planOfRule(fields);
  assert.deepEqual([plan.when, plan.for_s], [{ count: { query: 7, below: 1 } }, 600]);
  assert.deepEqual(fieldsOfRule(plan), fields);
  assert.equal(
    ruleSentences(plan, nameOf),
    "An alarm begins when there has been nothing in Harbour for 10 min without a break. It ends when that holds no more.",
  );
  const more = planOfRule({ ...fields, limit: "more" });
  assert.deepEqual(fieldsOfRule(more), { ...fields, limit: "more" });
  assert.equal(
    planText(more, (source, number) => nameOf(number)),
    "alarm if more than 20 in Harbour for 10 min",
  );
  assert.deepEqual(Object.keys(errorsOfRule("a rule", { ...fields, limit: "fewer", objects: 1.5 })), ["objects"]);
});

test("minutes become seconds without the errors of binary fractions", () => {
  const plan = planOfRule({ ...FIELDS, whole: true, limit: "none", objects: 20, forMin: 0.03 });
  assert.equal(plan.for_s, 1.8);
  assert.equal(duration(0.03 * 60), "1.8 s");
});

test("a rule about the value of an aggregate", () => {
  const fields = { ...FIELDS, valued: true, side: "below", bound: 1, group: "tanker", forMin: 10 };
  const plan = planOfRule(fields);
  assert.deepEqual(
    [plan.when, plan.for_s, plan.until],
    [{ value: { query: 7, group: "tanker", below: 1 } }, 600, undefined],
  );
  assert.deepEqual(fieldsOfRule(plan), { ...fields, whole: false });
  assert.equal(
    ruleSentences(plan, nameOf),
    "An alarm begins when it has been so for 10 min without a break: Harbour for tanker below 1. It ends when that holds no more.",
  );
  assert.equal(
    planText(plan, (source, number, limit) => (source === "value" ? String(limit) : nameOf(number))),
    "alarm if Harbour for tanker below 1 for 10 min",
  );
  assert.deepEqual(Object.keys(errorsOfRule("a rule", { ...fields, bound: NaN })), ["bound"]);
  assert.deepEqual(Object.keys(errorsOfRule("a rule", { ...fields, grouped: true, group: "" })), ["bound"]);
});

test("a second bound, and how often, of numbers", () => {
  const value = { ...FIELDS, valued: true, side: "above", bound: 5, group: "", back: 3, forMin: 1 };
  const plan = planOfRule(value);
  assert.deepEqual([plan.when, plan.until], [{ value: { query: 7, above: 5 } }, { value: { query: 7, above: 3 } }]);
  assert.deepEqual(fieldsOfRule(plan), { ...value, whole: false });
  assert.match(ruleSentences(plan, nameOf), /It ends when this holds no more: Harbour above 3\.$/);
  assert.deepEqual(Object.keys(errorsOfRule("a rule", { ...value, back: 6 })), ["back"]);
  const count = { ...FIELDS, whole: true, limit: "fewer", objects: 3, back: 5, forMin: 1 };
  assert.deepEqual(planOfRule(count).until, { count: { query: 7, below: 5 } });
  assert.deepEqual(fieldsOfRule(planOfRule(count)), count);
  assert.deepEqual(Object.keys(errorsOfRule("a rule", { ...count, back: 2 })), ["back"]);
  const often = planOfRule({ ...count, often: true, moreThan: 3, withinMin: 10 });
  assert.deepEqual([often.rate, often.until, often.for_s], [{ more_than: 3, within_s: 600 }, undefined, undefined]);
  assert.equal(fieldsOfRule(often).often, true);
  assert.equal(fieldsOfRule({ ...plan, until: { value: { query: 8, above: 3 } } }), null);
  assert.equal(fieldsOfRule({ ...plan, until: { value: { query: 7, below: 3 } } }), null);
});

test("an alarm about numbers says what they were", () => {
  const plan = planOfRule({ ...FIELDS, valued: true, side: "below", bound: 1, group: "", forMin: 10 });
  assert.equal(alarmText(plan, { value: 0.8123 }, nameOf), "Harbour: 0.812, below 1 for 10 min");
  const count = planOfRule({ ...FIELDS, whole: true, limit: "more", objects: 20, forMin: 0 });
  assert.equal(alarmText(count, { count: 23 }, nameOf), "Harbour: 23 objects, above 20");
  assert.equal(
    alarmText({ when: { all: [] } }, { "count of 7": 2, "value of 8 (tanker)": 0.5 }, nameOf),
    "Harbour: 2, Ferries (tanker): 0.5",
  );
  assert.equal(alarmText(plan, { value: null }, nameOf), "");
  assert.equal(alarmText(plan, {}, nameOf), "");
});

test("a rule about silence has its plan, its fields and its words", () => {
  const fields = { ...FIELDS, silent: true, expected: ["bus 12", "bus 13"], forMin: 10, also: 9, until: 9 };
  const plan = planOfRule(fields);
  assert.deepEqual(plan, {
    stream: "ships",
    kind: "rule",
    when: { silent: { query: 7, expected: ["bus 12", "bus 13"] } },
    for_s: 600,
    rearm_s: 0,
  });
  assert.deepEqual(fieldsOfRule(plan), { ...fields, also: "", until: "" });
  assert.equal(
    ruleSentences(plan, nameOf),
    "An alarm begins when an object whose last report was in Harbour has not reported for 10 min. It also begins for these, even if they were never heard: bus 12, bus 13. If nothing is heard of the whole stream, that is one alarm. It lasts until the object reports again.",
  );
  assert.equal(alarmText(plan, { stream: "ships" }, nameOf), "nothing is heard of the stream ships");
  assert.deepEqual(Object.keys(errorsOfRule("a rule", { ...fields, forMin: 0 })), ["forMin"]);
});
