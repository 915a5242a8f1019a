// The list of queries: how each stands, how many objects it holds, and what can be done with it.

import { $, coalesced, h, icon, setText } from "./dom.js";
import { count, planText } from "./format.js";

const REFRESH_MS = 200;

/** @param {object} actions `zoom`, `show`, `edit`, `pause`, `share`, `cancel`, `events`: functions of a query */
export function createQueryList(store, actions) {
  const rows = new Map();
  const list = $("query-list");
  const render = () => {
    const queries = store.listed();
    const numbers = new Set(queries.map((q) => q.query));
    for (const [number, row] of rows) {
      if (numbers.has(number)) continue;
      row.element.remove();
      rows.delete(number);
    }
    for (const query of queries) {
      if (!rows.has(query.query)) {
        const row = createRow(store, query.query, actions);
        rows.set(query.query, row);
        list.append(row.element);
      }
      rows.get(query.query).update(query);
    }
    $("queries-empty").hidden = queries.length > 0;
    setText($("query-count"), queries.length > 0 ? String(queries.length) : "");
  };
  store.on("queries objects streams layers", coalesced(render, REFRESH_MS));
  render();
}

function createRow(store, number, actions) {
  const act = (name) => () => actions[name](store.queries.get(number));
  const button = (name, symbol, text, kind = "") =>
    h("button", { type: "button", class: `quiet small ${kind}`, onclick: act(name), "data-action": name }, icon(symbol), h("span", {}, text));
  const parts = {
    swatch: h("button", { type: "button", class: "swatch", onclick: act("show") }, icon("eye")),
    name: h("span", { class: "query-name" }),
    about: h("span", { class: "query-about" }),
    status: h("span", { class: "pill" }),
    count: h("span", { class: "query-count" }),
    note: h("p", { class: "query-note hint", hidden: true }),
    error: h("p", { class: "field-error", hidden: true }),
    warning: h("p", { class: "query-warning notice", role: "status", hidden: true }),
    show: button("show", "eye", "Hide"),
    edit: button("edit", "edit", "Edit"),
    pause: button("pause", "pause", "Pause"),
    share: button("share", "share", "Share"),
    cancel: button("cancel", "trash", "Cancel", "danger"),
  };
  const menu = h("div", { class: "query-actions", id: `query-actions-${number}`, hidden: true },
    button("zoom", "zoom", "Zoom to"), button("events", "list", "Events"), parts.show, parts.edit, parts.pause, parts.share, parts.cancel);
  const open = h("button", { type: "button", class: "query-main quiet", "aria-expanded": "false", "aria-controls": menu.id },
    h("span", { class: "query-text" }, parts.name, parts.about), parts.count, parts.status);
  open.addEventListener("click", () => {
    menu.hidden = !menu.hidden;
    open.setAttribute("aria-expanded", String(!menu.hidden));
  });
  const element = h("li", { class: "query", "data-query": number }, h("div", { class: "query-row" }, parts.swatch, open), parts.note, parts.error, parts.warning, menu);
  return { element, update: (query) => update(store, query, element, parts) };
}

function update(store, query, element, parts) {
  const paused = query.status === "paused";
  element.dataset.status = query.status;
  element.dataset.shown = query.shown;
  parts.swatch.style.setProperty("--colour", `var(--q${query.colour})`);
  parts.swatch.setAttribute("aria-label", `${query.shown ? "Hide" : "Show"} ${query.name} on the map`);
  parts.swatch.setAttribute("aria-pressed", String(query.shown));
  setText(parts.name, query.name);
  const where = query.plan?.where ? " \u00b7 filtered" : "";
  const owner = query.mine === false ? ` \u00b7 by ${query.owner}` : query.shared ? " \u00b7 shared" : "";
  const stream = store.streams.get(query.stream)?.title ?? query.stream;
  const titleOf = (source, name) => (source === "layer" ? store.layers : store.streams).get(name)?.title ?? name;
  setText(parts.about, `${stream}, ${planText(query.plan, titleOf)}${where}${owner}`);
  setText(parts.status, query.status);
  parts.status.dataset.status = query.status;
  setText(parts.count, query.status === "running" ? count(store.count(query.query)) : "");
  const pairs = store.pairCount(query.query);
  parts.count.title = pairs > 0 ? `objects in the answer, in ${count(pairs)} pairs` : "objects in the answer";
  parts.note.hidden = query.status !== "running" || !store.answers.has(query.query) || store.count(query.query) > 0;
  setText(parts.note, `Nothing of ${stream} matches now.`);
  parts.error.hidden = !query.error;
  setText(parts.error, query.error ?? "");
  parts.warning.hidden = !query.warning;
  setText(parts.warning, query.warning ?? "");
  setText(parts.show.lastChild, query.shown ? "Hide" : "Show");
  setText(parts.pause.lastChild, paused ? "Resume" : "Pause");
  parts.pause.querySelector("use").setAttribute("href", paused ? "#icon-play" : "#icon-pause");
  setText(parts.share.lastChild, query.shared ? "Unshare" : "Share");
  for (const name of ["edit", "pause", "share", "cancel"]) parts[name].hidden = query.mine === false;
  parts.pause.hidden ||= !["running", "paused"].includes(query.status);
}
