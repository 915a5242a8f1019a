import assert from "node:assert/strict";
import { test } from "node:test";

import { errorField } from "../../static/js/queries/error-field.js";
import * as format from "../../static/js/format.js";
import { frameFigures } from "../../static/js/frame-meter.js";
import { REASONS } from "../../static/js/store/frames.js";
import { barOf } from "../../static/js/map/scale.js";
import { chooseUnits, unitsName } from "../../static/js/units.js";
import { kindOf, KINDS } from "../../static/js/objects/object-kinds.js";
import { courseOf } from "../../static/js/objects/objects.js";

test("units follow the field's name", () => {
  assert.equal(format.value("speed_mps", 10), "10 m/s");
  assert.equal(format.value("course_deg", 273.04), "273°");
  assert.equal(format.value("altitude_m", 10668), "10,668 m");
  assert.equal(format.value("length_m", 120), "120 m");
  assert.equal(format.value("eta_us", 0), "1970-01-01 00:00:00 UTC");
});

test("identifiers keep their digits together", () => {
  assert.equal(format.value("mmsi", 230123456), "230123456");
  assert.equal(format.value("time", 1795253259.481), "2026-11-21 09:27:39 UTC");
  assert.equal(format.value("timestamp", 1795253259481), "2026-11-21 09:27:39 UTC");
  assert.equal(format.value("time", 12), "12");
  assert.equal(format.value("passengers", 12345), "12,345");
});

test("labels leave the unit out", () => {
  assert.deepEqual(["speed_mps", "ship_type", "_m"].map(format.label), ["Speed", "Ship type", "M"]);
});

test("properties without a value are left out", () => {
  assert.deepEqual(format.properties({ a: null, b: "", c: 0, d: false }), [
    ["C", "0"],
    ["D", "no"],
  ]);
});

test("ages and lags read well at every length", () => {
  assert.deepEqual([-5, 900, 12_000, 180_000, 7_200_000, 86_400_000 * 4, NaN].map(format.age), [
    "now",
    "now",
    "12 s",
    "3 min",
    "2 h",
    "4 d",
    "–",
  ]);
  assert.deepEqual([342, 2400, 180_000, NaN].map(format.lag), ["342 ms", "2.4 s", "3 min", "–"]);
});

test("the same moment is shown in UTC and in local time", () => {
  const ms = Date.UTC(2026, 0, 15, 12, 34, 56);
  assert.equal(format.utcClock(ms), "12:34:56");
  assert.equal(format.localClock(ms, "Europe/Helsinki"), "14:34:56");
});

test("places name their hemispheres, beyond the antimeridian as well", () => {
  assert.equal(format.place(190, -10), "10.0000° S, 170.0000° W");
  assert.equal(format.place(NaN, 1), "–");
});

test("a thing is called by its name, or else by its key", () => {
  assert.equal(format.title("k", { name: " ", call_sign: "FIN7 " }), "FIN7");
  assert.equal(format.title("k", {}), "k");
});

test("a server's error finds its field", () => {
  const field = (message) => errorField("plan", message);
  assert.equal(field("where: the ( at character 5 is not closed"), "where");
  assert.equal(field("where: an operator such as =, < or AND is expected at character 7; got radius"), "where");
  assert.equal(field("compare: longitude: lo must not exceed hi; got 3 > 2"), "box");
  assert.equal(field("stream must be the name of a stream; got ''"), "stream");
  assert.equal(field("name must be a text of 1 to 120 characters; got ''"), "name");
  assert.equal(field("too many messages"), null);
});

test("a course is read from the text of the properties, a heading where there is none", () => {
  assert.equal(courseOf('{"name":"x","course_deg":12.5,"heading_deg":3}'), 12.5);
  assert.equal(courseOf('{"course_deg":null,"heading_deg":3}'), 3);
  assert.ok(Number.isNaN(courseOf("{}")));
});

test("an unknown icon is another kind", () => {
  assert.deepEqual(
    [kindOf("ship"), kindOf("aircraft"), kindOf("bus"), kindOf("balloon"), kindOf(undefined)],
    ["ship", "aircraft", "bus", "other", "other"].map((kind) => KINDS.indexOf(kind)),
  );
});

test("frame figures are those of the frames", () => {
  assert.deepEqual(frameFigures([10, 10, 10, 70]), { frames: 4, fps: 40, p50: 10, p99: 70, max: 70 });
  assert.equal(frameFigures([]).fps, 0);
});

test("lengths are in metres, then in kilometres", () => {
  assert.deepEqual([0, 4.56, 12.34, 850, 999.6, 9260, 25_490, 1_234_567, NaN].map(format.length), [
    "0 m",
    "4.6 m",
    "12.3 m",
    "850 m",
    "1,000 m",
    "9.26 km",
    "25.5 km",
    "1,235 km",
    "–",
  ]);
});

/** Run with other units, and come back. */
function inUnits(name, run) {
  chooseUnits(name);
  try {
    run();
  } finally {
    chooseUnits("metric");
  }
}

test("nautical figures are in nautical miles, knots, feet and feet a minute", () => {
  inUnits("nautical", () => {
    assert.deepEqual([4.56, 100, 186, 9260, 1_234_567].map(format.length), [
      "4.6 m",
      "100 m",
      "0.1 nm",
      "5 nm",
      "667 nm",
    ]);
    assert.equal(format.value("speed_mps", 10), "19.4 kn");
    assert.equal(format.value("vertical_rate_mps", 5.08), "1,000 ft/min");
    assert.equal(format.value("climb_fpm", -1200), "-1,200 ft/min");
    assert.equal(format.value("altitude_m", 10668), "35,000 ft");
    assert.equal(format.value("length_m", 120), "120 m");
    assert.equal(format.figureText(10, { function: "avg", property: "speed_mps" }), "19.4 kn");
  });
});

test("imperial figures are in feet, miles, miles an hour and degrees Fahrenheit", () => {
  inUnits("imperial", () => {
    assert.deepEqual([3.048, 100, 1609.344, 80_467.2].map(format.length), ["10 ft", "328 ft", "1 mi", "50 mi"]);
    assert.equal(format.value("speed_mps", 10), "22.4 mph");
    assert.equal(format.value("altitude_m", 1000), "3,281 ft");
    assert.equal(format.value("air_c", 20), "68 °F");
    assert.equal(format.value("load_kg", 100), "220 lb");
  });
});

test("a feed's own units become the chosen ones", () => {
  assert.deepEqual(
    [
      ["altitude_ft", 35_000],
      ["climb_fpm", 1000],
      ["range_nm", 5],
      ["wind_kn", 20],
      ["speed_kmh", 36],
    ].map(([name, content]) => format.value(name, content)),
    ["10,668 m", "5.1 m/s", "9.26 km", "10.3 m/s", "10 m/s"],
  );
});

test("an unknown choice of units changes nothing", () => {
  for (const name of ["cubits", "constructor", null]) chooseUnits(name);
  assert.equal(unitsName(), "metric");
});

test("a scale bar stands for a round length in the chosen units", () => {
  const round = (amount) => 10 ** Math.floor(Math.log10(amount));
  assert.deepEqual(barOf(2500, round), ["1 km", 0.4]);
  assert.deepEqual(barOf(500, round), ["100 m", 0.2]);
  inUnits("nautical", () => assert.deepEqual(barOf(3704, round), ["1 nm", 0.5]));
  inUnits("imperial", () => assert.equal(barOf(100, round)[0], "100 ft"));
});

test("local time stands beside UTC only where they differ", () => {
  const [winter, summer] = [Date.UTC(2026, 0, 15, 12), Date.UTC(2026, 6, 15, 12)];
  assert.deepEqual(
    [format.isUtc(winter, "UTC"), format.isUtc(winter, "Europe/London"), format.isUtc(summer, "Europe/London")],
    [true, true, false],
  );
  assert.equal(format.bothTimes(winter, "UTC"), "2026-01-15 12:00:00 UTC");
  assert.equal(format.bothTimes(winter, "Europe/Helsinki"), "2026-01-15 12:00:00 UTC, 2026-01-15 14:00:00 local");
});

test("a threshold tells in words what it did", () => {
  const crossing = { queryName: "Ships near X", group: "", threshold: "above 20", sign: 1, value: 23 };
  assert.equal(format.happened("", crossing), "Ships near X: above 20 (now 23)");
  assert.equal(
    format.happened("", { ...crossing, group: "cargo", sign: -1, value: null }),
    "Ships near X, cargo: no longer above 20",
  );
});

test("a figure is told in the unit of its property", () => {
  assert.equal(format.figureText(23, { function: "count" }), "23");
  assert.equal(format.figureText(10, { function: "avg", property: "speed_mps" }), "10 m/s");
  assert.equal(format.figureText(59.7123456, { function: "max", dimension: "latitude" }), "59.71235");
  assert.equal(format.figureText(null, { function: "min", property: "x" }), "–");
  assert.equal(format.groupName("null", { group_by: "ship_type" }), "no ship type");
});

test("degrees name their side", () => {
  assert.deepEqual(
    [format.degrees(-12.346, 0), format.degrees(60, 1), format.degrees(0, 1)],
    ["12.35° W", "60° N", "0°"],
  );
});

test("stale elements are told where they are more than one in a hundred", () => {
  assert.equal(format.staleness({ stale: 10, elements: 1000 }), "");
  assert.equal(format.staleness({ stale: 4020, elements: 30991 }), "4,020 stale: check its times");
  assert.equal(format.staleness({ elements: 5 }), "");
});

test("where the filter decided, nothing is said to have moved", () => {
  assert.deepEqual(
    [1, -1].map((sign) => format.reason("filtered", sign)),
    ["now matches the filter", "no longer matches the filter"],
  );
  for (const name of REASONS) for (const sign of [-1, 0, 1]) assert.doesNotMatch(format.reason(name, sign), /_/);
});
