// The lists and tables of the operations page, from the present figures.

import { h } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { figure } from "./series.js";

const NONE = "\u2013";
const PROGRAMS = {
  beat: gettext("beat"),
  database: gettext("database"),
  disk: gettext("disk"),
  engine: gettext("engine"),
  gateway: gettext("gateway"),
  worker: gettext("worker"),
};
const STATES = {
  connecting: gettext("connecting"),
  running: gettext("running"),
  retrying: gettext("retrying"),
  failed: gettext("failed"),
  finished: gettext("finished"),
  stopped: gettext("stopped"),
};

/** Show whether each program works. */
export function showParts(list, { programs, reasons, spaces }, space) {
  const standby = spaces[space]?.standby;
  const items = programs.map((part) =>
    item(PROGRAMS[part] ?? part, reasons[part] ? "down" : "up", reasons[part] ?? gettext("works")),
  );
  if (spaces[space])
    items.push(
      item(
        gettext("second engine"),
        standby ? "up" : "none",
        standby ? gettext("stands by") : gettext("none stands by"),
      ),
    );
  list.replaceChildren(...items);
}

const item = (part, state, words) => h("li", { "data-state": state }, `${part}: ${words}`);

/** Show what is wrong. A list that has not changed stays, so that it is not read out again. */
export function showTroubles(list, troubles) {
  const told = JSON.stringify(troubles);
  if (list.dataset.told === told) return;
  list.dataset.told = told;
  const items = troubles.map(({ level, where, words }) =>
    h("li", { "data-level": level }, h("strong", {}, where), `: ${words}`),
  );
  list.replaceChildren(
    ...(items.length ? items : [h("li", { "data-level": "good" }, gettext("Nothing: everything works."))]),
  );
}

export function showQueries(table, { queries = [] }, names) {
  const rows = queries.map(({ query, seconds, tuples }) => [
    query === 0 ? gettext("all views") : `${query}: ${names[query] ?? gettext("deleted or hidden")}`,
    figure(seconds, "s"),
    figure(tuples),
  ]);
  show(
    table,
    [gettext("Query"), gettext("Time"), gettext("Result tuples")],
    rows,
    gettext("No query has cost or changed anything in this interval."),
  );
}

export function showRegions(table, { regions = [] }) {
  const rows = regions.map(({ region, task, elements, cpu_s, objects }) => [
    `${region}`,
    filled(gettext("task %(task)s"), { task }),
    figure(objects),
    figure(elements),
    figure(cpu_s, "s"),
  ]);
  const heads = [
    gettext("Region"),
    gettext("Runs in"),
    gettext("Objects"),
    gettext("Elements"),
    gettext("Processor time"),
  ];
  show(table, heads, rows, gettext("The engine has not reported regions yet."), 2);
}

export function showStreams(table, streams, space) {
  const rows = Object.entries(streams)
    .filter(([, told]) => told.space === space)
    .map(([name, told]) => [
      name,
      STATES[told.state] ?? told.state,
      ...["elements", "merged", "stale", "lost", "malformed"].map((count) => figure(told[count])),
      figure(told.bytes, "B"),
    ]);
  const counted = [
    gettext("Elements"),
    gettext("Merged"),
    gettext("Stale"),
    gettext("Lost"),
    gettext("Malformed"),
    gettext("Received"),
  ];
  show(table, [gettext("Stream"), gettext("State"), ...counted], rows, gettext("No stream runs in this space."), 2);
}

/** Write a table. The first `words` columns are texts, the others figures. */
function show(table, heads, rows, empty, words = 1) {
  const kind = (i) => (i < words ? {} : { class: "figure" });
  const head = h("thead", {}, h("tr", {}, ...heads.map((text, i) => h("th", { scope: "col", ...kind(i) }, text))));
  const lines = rows.map((cells) =>
    h(
      "tr",
      {},
      ...cells.map((text, i) => (i === 0 ? h("th", { scope: "row" }, text) : h("td", kind(i), text ?? NONE))),
    ),
  );
  const none = h("tr", {}, h("td", { class: "empty", colspan: heads.length }, empty));
  table.replaceChildren(head, h("tbody", {}, ...(lines.length ? lines : [none])));
}
