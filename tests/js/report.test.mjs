import assert from "node:assert/strict";
import { test } from "node:test";

import {
  areaOf,
  columnsOf,
  drawnRows,
  duration,
  faultsOf,
  measured,
  omissions,
  parametersOf,
  REPORTS,
  sorted,
  summary,
  wayOf,
} from "../../static/js/report/questions.js";

const NOON = Date.UTC(2026, 10, 21, 12);
const NO_TERMS = { gap_s: null, fastest_mps: null, stop_m: null, stop_s: null };
const fields = (more) => ({
  stream: "ships",
  report: "visits",
  where: "view",
  area: { bbox: "1,2,3,4" },
  span: "hour",
  from: "",
  to: "",
  zone: "utc",
  zoneName: "Asia/Kolkata",
  terms: NO_TERMS,
  ...more,
});
const COUNTS = { elements: 1204, repeated: 0, unplaced: 0, jumps: 0, objects: 12 };
const answer = (more) => ({ report: "visits", total: 37, counts: COUNTS, rows: [], truncated: false, ...more });

test("parameters say the report, the area, the span and only the terms that were typed", () => {
  assert.deepEqual(parametersOf(fields(), NOON), {
    report: "visits",
    from: "2026-11-21T11:00:00.000Z",
    to: "2026-11-21T12:00:00.000Z",
    zone: "UTC",
    bbox: "1,2,3,4",
  });
  const typed = fields({
    span: "custom",
    from: "2026-11-20T10:00",
    to: "2026-11-20T11:00",
    terms: { ...NO_TERMS, gap_s: 60 },
  });
  assert.deepEqual(parametersOf(typed, NOON), {
    report: "visits",
    from: "2026-11-20T10:00:00.000Z",
    to: "2026-11-20T11:00:00.000Z",
    zone: "UTC",
    bbox: "1,2,3,4",
    gap_s: "60",
  });
  assert.equal(parametersOf(fields({ zone: "local" }), NOON).zone, "Asia/Kolkata");
});

test("an area is a box, also across the antimeridian, a closed polygon, or nothing", () => {
  assert.deepEqual(areaOf({ area: { lo: [170, -1], hi: [190, 1] } }), { bbox: "170,-1,190,1" });
  assert.deepEqual(
    JSON.parse(
      areaOf({
        polygon: [
          [0, 0],
          [1, 0],
          [1, 1],
        ],
      }).polygon,
    ).coordinates,
    [
      [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 0],
      ],
    ],
  );
  assert.deepEqual(areaOf({}), {});
});

test("what is missing or wrong is said by field", () => {
  assert.deepEqual(faultsOf(fields()), {});
  assert.deepEqual(Object.keys(faultsOf(fields({ stream: "", area: null, span: "custom" }))), [
    "stream",
    "where",
    "span",
  ]);
  assert.match(faultsOf(fields({ where: "feature", area: null })).where, /Select a polygon/);
  const late = fields({ span: "custom", from: "2026-11-21T10:00", to: "2026-11-20T10:00" });
  assert.match(faultsOf(late).span, /must not be later than the end; got 2026-11-21T10:00/);
  for (const wrong of [0, -1, NaN])
    assert.match(faultsOf(fields({ terms: { ...NO_TERMS, stop_m: wrong } })).terms, /above 0/);
});

test("the way of a visit has some of what was before and after, within the range", () => {
  const parameters = { ...parametersOf(fields(), NOON), format: "csv" };
  const { from, to, report, key, bbox, format } = wayOf(parameters, {
    key: "anna",
    begin: "2026-11-21T11:05:00Z",
    end: "2026-11-21T11:20:00Z",
  });
  assert.deepEqual(
    [from, to, report, key, bbox, format],
    ["2026-11-21T11:00:00.000Z", "2026-11-21T11:30:00.000Z", "way", "anna", "1,2,3,4", undefined],
  );
  assert.equal(wayOf(parameters, { key: "anna" }).to, parameters.to);
  const [drawn] = drawnRows([{ key: "anna", time: "2026-11-21T11:05:00Z", lon: 1, lat: 2, inside: true }]);
  assert.deepEqual([drawn.lo, drawn.hi, drawn.properties], [[1, 2], [1, 2], { inside: true }]);
});

test("rows are sorted by numbers as numbers, and equal ones keep their order", () => {
  const rows = [
    { key: "ship 10", n: 2 },
    { key: "ship 9", n: 10 },
    { key: "ship 1", n: 2 },
  ];
  assert.deepEqual(
    sorted(rows, "n", true).map(({ key }) => key),
    ["ship 9", "ship 10", "ship 1"],
  );
  assert.deepEqual(
    sorted(rows, "n", false).map(({ key }) => key),
    ["ship 10", "ship 1", "ship 9"],
  );
  assert.deepEqual(
    sorted(rows, "key", false).map(({ key }) => key),
    ["ship 1", "ship 9", "ship 10"],
  );
  assert.equal(rows[0].key, "ship 10");
});

test("spans of time and measures read as words", () => {
  assert.deepEqual([0, 45, 59.6, 720, 3599, 11_100, 86_399, 172_800, 198_000].map(duration), [
    "0 s",
    "45 s",
    "1 min",
    "12 min",
    "1 h 0 min",
    "3 h 5 min",
    "24 h 0 min",
    "2 d 0 h",
    "2 d 7 h",
  ]);
  assert.deepEqual([measured("visits", 1200), measured("dwell_s", 60)], ["1,200", "1 min"]);
});

test("an answer is described, with all that it leaves out", () => {
  assert.equal(summary(answer()), "37 visits of 12 objects, from 1,204 fixes");
  assert.equal(
    summary(answer({ report: "objects", total: 1, counts: { ...COUNTS, objects: 1, elements: 1 } })),
    "1 object, from 1 fix",
  );
  assert.equal(summary(answer({ total: 0, counts: { ...COUNTS, objects: 0 } })), "Nothing was there in this time.");
  assert.equal(summary(answer({ report: "stops", total: 0 })), "12 objects came, but there is no stop.");
  assert.equal(omissions(answer()), "");
  const left = omissions(answer({ truncated: true, counts: { ...COUNTS, jumps: 1, repeated: 2, unplaced: 1 } }));
  assert.match(
    left,
    /There are 37 rows, of which the first 0 were sent.* 1 jump is .* 2 elements repeat .* 1 element has no place and is left out/,
  );
});

test("every report has columns with titles and words", () => {
  for (const report of Object.keys(REPORTS)) {
    for (const [name, title, words] of columnsOf(report))
      assert.ok(name && title && typeof words === "function", report);
  }
});
