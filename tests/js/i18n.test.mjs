// The page in another language than English. A catalogue is there before the modules are, as the page loads it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const PO = new URL("../../webapp/locale/de/LC_MESSAGES/djangojs.po", import.meta.url);

/** Return the texts of a catalogue by context and English text: `{texts: [one, many], plural}`. */
function catalogueOf(po) {
  const texts = new Map();
  for (const block of po.split("\n\n")) {
    const fields = {};
    let field;
    for (const line of block.split("\n")) {
      const [, name, text] = /^(?:(msg\w+(?:\[\d\])?) )?(".*")$/.exec(line) ?? [];
      if (text === undefined) continue;
      field = name ?? field;
      fields[field] = (fields[field] ?? "") + JSON.parse(text);
    }
    if (fields.msgid)
      texts.set(`${fields.msgctxt ?? ""}\u0004${fields.msgid}`, [
        fields.msgstr ?? fields["msgstr[0]"],
        fields["msgstr[1]"],
      ]);
  }
  return texts;
}

const german = catalogueOf(readFileSync(PO, "utf8"));
const found = (context, text) => german.get(`${context}\u0004${text}`);
globalThis.document = { documentElement: { lang: "de" } };
globalThis.django = {
  gettext: (text) => found("", text)?.[0] || text,
  pgettext: (context, text) => found(context, text)?.[0] || text,
  ngettext: (one, many, count) => found("", one)?.[count === 1 ? 0 : 1] || (count === 1 ? one : many),
};

const { filled, gettext } = await import("../../static/js/i18n.js");
const { crossingText, count, happened, label, length, place, reason, value } =
  await import("../../static/js/format.js");
const { planText } = await import("../../static/js/kinds/plan-text.js");
const { timesText } = await import("../../static/js/events/event-groups.js");
const { summary } = await import("../../static/js/history/history.js");
const { bounded } = await import("../../static/js/kinds/sketch/bounds.js");

test("a text is filled with values in any order, and a value is not read again", () => {
  assert.equal(filled("%(b)s, %(a)s, %(b)s, 5 %", { a: "%(b)s", b: 1 }), "1, %(b)s, 1, 5 %");
});

test("a text without a translation stays as it is", () => {
  assert.equal(gettext("no such text"), "no such text");
});

test("numbers are written as the language writes them, places with points", () => {
  assert.equal(count(1234567), "1.234.567");
  assert.equal(length(9260), "9,26 km");
  assert.equal(place(24.9384, 60.1699), "60.1699\u00b0 N, 24.9384\u00b0 O");
});

test("plans are said in German", () => {
  const titleOf = (_, name) => name;
  assert.equal(
    planText({ kind: "knn", k: 10, around: { stream: "ships", key: "1" }, max_distance: 5000 }, titleOf, "MS Anna"),
    "die 10 nächsten an MS Anna, höchstens 5 km weg",
  );
  const aggregate = { function: "avg", property: "speed_mps", group_by: "ship_type" };
  assert.equal(
    planText({ kind: "range", area: { circle: { center: [0, 0], radius_m: 5000 } }, aggregate }, titleOf),
    "Mittelwert von Geschwindigkeit in einem Kreis von 5 km, nach Schiffstyp",
  );
  assert.equal(
    planText({ kind: "join", join: { layer: "Parks", predicate: "dwithin", distance: 50 } }, titleOf),
    "höchstens 50 m von Parks",
  );
});

test("events are said in German, of one and of many", () => {
  const event = { partner: "Nuuksio", predicate: "within", sign: 1 };
  assert.equal(happened("Bus 12", event), "Bus 12 kam in Nuuksio");
  assert.equal(happened("Bus 12", { ...event, sign: -1 }), "Bus 12 hat Nuuksio verlassen");
  assert.equal(
    crossingText({ queryName: "Q", group: "", threshold: "above 20 for 300 s", sign: -1, value: 3 }),
    "Q: nicht mehr über 20 für 300 s (jetzt 3)",
  );
  assert.equal(timesText({ entered: 3, left: 1, newest: {} }), "3-mal eingetreten, einmal ausgetreten");
  assert.equal(reason("moved", 1), "hineinbewegt");
  assert.equal(summary([{ key: "a" }]), "1 Zeile von 1 Schlüssel");
});

test("fields of the decoders have German names, others those of their feed", () => {
  assert.deepEqual(["speed_mps", "course_deg", "wind_gust_mps"].map(label), ["Geschwindigkeit", "Kurs", "Wind gust"]);
  assert.equal(value("on_ground", true), "ja");
});

test("every German text has the placeholders of the English one", () => {
  const placeholders = (text) => [...new Set(text.match(/%\(\w+\)s/g) ?? [])].sort().join();
  assert.ok(german.size > 400);
  for (const [key, [one, many]] of german) {
    const english = key.slice(key.indexOf("\u0004") + 1);
    assert.ok(one, `no German for ${english}`);
    if (many === undefined) assert.equal(placeholders(one), placeholders(english), english);
  }
});

test("a bound is left out only below the last digit, however the language writes decimals", () => {
  assert.equal(bounded("count", "", { value: 1234.4, low: 1200, high: 1268.8 }), "1.234 \u00b1 34");
  assert.equal(bounded("correlation", "a", { value: 0.512, low: 0.502, high: 0.522 }), "0,512 \u00b1 0,01");
  assert.equal(bounded("correlation", "a", { value: 0.512, low: 0.5119, high: 0.5121 }), "0,512");
});
