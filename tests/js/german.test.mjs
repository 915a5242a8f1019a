// The German catalogue, as the page gets it: texts that are made of several parts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const PO = new URL("../../webapp/locale/de/LC_MESSAGES/djangojs.po", import.meta.url);

/** Read the entries of a catalogue: `{msgctxt, msgid, msgid_plural, texts}`. */
function entriesOf(text) {
  return text.split(/\n{2,}/).map((block) => {
    const fields = {};
    let last = null;
    for (const line of block.split("\n")) {
      const [, name, content] = /^(?:(msg\w+(?:\[\d\])?) )?(".*")$/.exec(line) ?? [];
      if (!content) continue;
      last = name ?? last;
      fields[last] = (fields[last] ?? "") + JSON.parse(content);
    }
    const { msgctxt, msgid, msgid_plural: plural } = fields;
    return {
      msgctxt,
      msgid,
      plural,
      texts: Object.keys(fields)
        .filter((name) => name.startsWith("msgstr"))
        .map((name) => fields[name]),
    };
  });
}

const entries = entriesOf(readFileSync(PO, "utf8")).filter(({ msgid }) => msgid);
const textsOf = (msgid, context) => entries.find((entry) => entry.msgid === msgid && entry.msgctxt === context)?.texts;
globalThis.django = {
  gettext: (text) => textsOf(text)?.[0] ?? text,
  ngettext: (one, many, count) => textsOf(one)?.[count === 1 ? 0 : 1] ?? (count === 1 ? one : many),
  pgettext: (context, text) => textsOf(text, context)?.[0] ?? text,
};
const load = (path) => import(`../../static/js/${path}`); // now, so that texts at the top of a module are German, too

test("a German text has the same places for values as the English one", () => {
  const places = (text) => [...new Set(text.match(/%\(\w+\)s/g))].sort().join();
  for (const { msgid, plural, texts } of entries) {
    for (const text of texts.filter(Boolean))
      assert.ok([msgid, plural ?? msgid].map(places).includes(places(text)), `${msgid}: ${text}`);
  }
});

test("a rule is German sentences", async () => {
  const { ruleSentences } = await load("kinds/rule/words.js");
  const plan = {
    when: { all: [{ query: 1 }, { not: { query: 2 } }] },
    for_s: 300,
    rearm_s: 600,
    schedule: { days: ["mon", "tue"], from: "22:00", to: "06:00", time_zone: "Europe/Zurich" },
  };
  assert.equal(
    ruleSentences(plan, (number) => `Q${number}`),
    "Ein Alarm beginnt, wenn für ein Objekt 5 min lang ohne Unterbrechung gilt: in Q1 und nicht in Q2. " +
      "Er dauert, bis das für das Objekt nicht mehr gilt. Danach hat dasselbe Objekt 10 min lang keinen anderen Alarm. " +
      "Die Regel gilt am Montag, Dienstag von 22:00 bis 06:00 des nächsten Tages (Europe/Zurich).",
  );
});

test("counts have a German plural", async () => {
  const { openText } = await load("incidents/words.js");
  const { summary } = await load("report/questions.js");
  const { placeText } = await load("kinds/sketch/places.js");
  assert.equal(openText({ info: 0, warning: 2, critical: 1 }), "3 offen: 1 kritisch, 2 Warnungen");
  assert.equal(
    summary({ report: "visits", total: 1, counts: { objects: 1, elements: 12 } }),
    "1 Besuch, 1 Objekt, 12 Ortungen",
  );
  assert.equal(
    summary({ report: "stops", total: 0, counts: { objects: 3, elements: 12 } }),
    "3 Objekte kamen, aber es gibt keinen Halt.",
  );
  assert.equal(
    placeText({
      polygon: [
        [0, 0],
        [1, 0],
        [1, 1],
      ],
    }),
    "Ein Polygon mit 3 Ecken",
  );
});

test("what the server adds to a change of an incident is German where it is a fixed word", async () => {
  const { changeText } = await load("incidents/words.js");
  assert.equal(changeText({ user: "ada", what: "assigned", text: "to bob" }), "ada: zugewiesen an bob");
  assert.equal(changeText({ user: "ada", what: "closed", text: "by hand" }), "ada schloss ihn von Hand");
  assert.equal(changeText({ user: null, what: "closed", text: "moved" }), "Lookout schloss ihn: hinausbewegt");
  const done = "ada changed what the query asks for and paused the query";
  assert.equal(
    changeText({ user: null, what: "closed", text: done }),
    "Lookout schloss ihn: ada änderte den Plan der Abfrage und hielt die Abfrage an",
  );
});

test("a question to a sketch, and an error in a filter, are German", async () => {
  const { sketchText } = await load("kinds/sketch/words.js");
  const { compileFilter } = await load("display-filter/filter.js");
  const ask = [{ question: "mean", features: ["temp", "wind"] }, { question: "count" }];
  assert.equal(
    sketchText({ ask, area: {}, time: { last_s: 172_800 } }),
    "Mittel von temp, wind, Anzahl der Elemente in einem Gebiet, in den letzten 2 Tagen",
  );
  assert.throws(() => compileFilter("speed >"), {
    message:
      "where: am Ende, bei Zeichen 8, fehlt ein Wert: eine Zahl, ein Text in einfachen Anführungszeichen oder der Name einer Eigenschaft",
  });
});
