import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { FilterError } from "../../static/js/display-filter/cql2.js";
import { plainText, planFilter, shownFilter } from "../../static/js/queries/filter-units.js";
import { suggestions, verdict, vocabularyOf } from "../../static/js/queries/filter-words.js";
import { crossingText } from "../../static/js/format.js";
import { planText } from "../../static/js/kinds/plan-text.js";
import { pageEvents } from "../../static/js/page-events.js";
import { fromOwn, LENGTH, shownUnit, SPEED, toOwn, writableIn } from "../../static/js/quantities.js";
import { aboutText, limitText } from "../../static/js/queries/query-words.js";
import { ruleText } from "../../static/js/kinds/rule/words.js";
import { chooseUnits, SYSTEMS } from "../../static/js/units.js";
import { randomOf } from "./helpers.mjs";

const KNOTS_10 = String(10 * (1852 / 3600));

afterEach(() => chooseUnits("metric"));

test("a number with a unit behind it is in the property's own unit in the plan", () => {
  for (const [typed, plan] of [
    ["speed_mps > 10 kn", `speed_mps > ${KNOTS_10}`],
    ["speed_mps>10kn", `speed_mps>${KNOTS_10}`],
    ["speed_mps > 36 km/h AND draught_m < 20 ft", "speed_mps > 10 AND draught_m < 6.096"],
    ["10 kn < speed_mps", `${KNOTS_10} < speed_mps`],
    [
      "speed_mps BETWEEN 1 kn AND 10 KTS AND course_deg < 180",
      `speed_mps BETWEEN ${1852 / 3600} AND ${KNOTS_10} AND course_deg < 180`,
    ],
    ["speed_mps NOT IN (10 kn, 5)", `speed_mps NOT IN (${KNOTS_10}, 5)`],
    ["NOT (speed_mps > 10 kn) OR name = '10 kn'", `NOT (speed_mps > ${KNOTS_10}) OR name = '10 kn'`],
    ["2 * speed_mps > 10 kn", `2 * speed_mps > ${KNOTS_10}`],
    ["vertical_rate_mps < -600 ft/min", "vertical_rate_mps < -3.048"],
    ["altitude_m > 3000 ft", `altitude_m > ${3000 * 0.3048}`],
    ["sog_kn >= 5 m/s", `sog_kn >= ${5 / (1852 / 3600)}`],
    ["temp_c < -4 \u00b0F", "temp_c < -20"],
    ['"wind speed_mps" > 36 km/h', '"wind speed_mps" > 10'],
    ["distance_km < 5 nmi", "distance_km < 9.26"],
    ["speed_mps > 5 m/s", "speed_mps > 5"],
    ["speed_mps - 1 > 5", "speed_mps - 1 > 5"],
  ])
    assert.equal(planFilter(typed), plan, typed);
});

test("a unit of another quantity, or where no property has one, is refused in words", () => {
  for (const [typed, words] of [
    ["draught_m > 10 kn", "draught_m is in m, so it cannot be compared with 10 kn"],
    ["name = 10 kn", "name does not say its unit, so it cannot be compared with 10 kn"],
    ["10 kn", "a unit needs a property that is compared with it; got 10 kn"],
  ])
    assert.throws(() => planFilter(typed), new FilterError(`where: ${words}`));
});

test("a plan's numbers are shown in the units of the page, and are the same again when nobody changed them", () => {
  chooseUnits("nautical");
  const exact = new Map();
  const where = `speed_mps > ${KNOTS_10} AND speed_mps < 17.123 AND draught_m > 5 AND altitude_m <> 914.4`;
  const shown = shownFilter(where, exact);
  assert.equal(shown, "speed_mps > 10 kn AND speed_mps < 33.28 kn AND draught_m > 5 AND altitude_m <> 3000 ft");
  assert.equal(planFilter(shown, exact), where);
  assert.equal(planFilter(shown.replace("10 kn", "12 kn"), exact), where.replace(KNOTS_10, String(12 * (1852 / 3600))));
  chooseUnits("metric");
  assert.equal(shownFilter(where), where);
});

test("numbers of calculations, of texts and of properties without a unit stay as they are", () => {
  chooseUnits("nautical");
  for (const where of [
    "2 * speed_mps > 5",
    "name = 'speed_mps > 5'",
    "course_deg > 5",
    "casei(name) = 'a'",
    "speed_mps > 5 ft",
    "speed_mps >",
  ])
    assert.equal(shownFilter(where), where);
});

test("whatever is typed in a unit is shown in it again", () => {
  const below = randomOf(7);
  for (const system of Object.keys(SYSTEMS)) {
    chooseUnits(system);
    for (const measure of [LENGTH, SPEED]) {
      for (let i = 0; i < 500; i++) {
        const unit = writableIn(measure)[below(writableIn(measure).length)];
        const typed = below(1_000_000) / 10 ** below(5);
        assert.equal(fromOwn(measure, toOwn(measure, typed, unit), unit), typed, `${typed} ${unit}`);
      }
    }
    const typed = `speed_mps > ${below(1000) / 10} ${shownUnit(SPEED)}`;
    assert.equal(shownFilter(planFilter(typed)), system === "metric" ? typed.replace(" m/s", "") : typed);
  }
});

test("a number without a unit is told in both, and units are offered behind a number", () => {
  const vocabulary = vocabularyOf(['{"speed_mps": 5, "name": "Anna"}']);
  const offered = (text) => suggestions(text, text.length, vocabulary).choices.map((choice) => choice.text);
  assert.equal(plainText("speed_mps > 5"), "");
  chooseUnits("nautical");
  assert.equal(plainText("speed_mps > 5"), "speed_mps is in m/s: 5 m/s = 9.719 kn. You can write 5 kn.");
  assert.equal(plainText("speed_mps > 5 kn"), "");
  const told = { error: null, matches: 1, of: 2, unknown: [] };
  assert.match(verdict(told, true, "speed_mps > 5")[1], /^Matches 1 of 2 in view now\. speed_mps is in m\/s/);
  assert.deepEqual(offered("speed_mps > 10 "), ["kn", "m/s", "km/h", "mph", "ft/min"]);
  assert.deepEqual(offered("speed_mps > 10 k"), ["kn", "km/h"]);
  assert.deepEqual(offered("speed_mps > 10 kn"), []);
  assert.deepEqual(offered("name = 'speed_mps > 10 "), []);
  assert.equal(suggestions("speed_mps > 10 k", 16, vocabulary).choices[0].words, "= 5.144 m/s");
  assert.equal(suggestions("spe", 3, vocabulary).choices[0].words, "such as 5 m/s = 9.719 kn");
});

test("cards say filters, thresholds and limits in the units of the page", () => {
  chooseUnits("nautical");
  const aggregate = { function: "avg", property: "speed_mps" };
  const query = { plan: { where: "speed_mps > 5", aggregate } };
  assert.match(aboutText({}, query, "Ships", "inside"), /where speed_mps > 9\.719 kn$/);
  const crossing = { queryName: "Q", group: "", threshold: "above 5 for 60 s", sign: 1, value: 6 };
  assert.equal(crossingText({ ...crossing, property: "speed_mps" }), "Q: above 9.7 kn for 60 s (now 11.7 kn)");
  assert.equal(crossingText(crossing), "Q: above 5 for 60 s (now 6)");
  assert.equal(limitText({ aggregate: { function: "count" } }, 5), "5");
  const rule = { kind: "rule", when: { value: { query: 7, above: 5 } } };
  const limits = (number, limit) => limitText(query.plan, limit);
  assert.match(
    ruleText(rule, () => "Q", limits),
    /Q above 9\.7 kn/,
  );
  const titles = (source, name, limit) => (source === "value" ? limitText(query.plan, limit) : "Q");
  assert.match(planText(rule, titles), /Q above 9\.7 kn/);
});

test("whoever wants to know hears of other units, but not of unknown ones", () => {
  let heard = 0;
  pageEvents.on("units", () => heard++);
  chooseUnits("imperial");
  chooseUnits("furlongs");
  assert.equal(heard, 1);
});
