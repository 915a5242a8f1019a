// The list of queries: a card for each, with its state, the number of objects in its answer, and its actions.

import { $, coalesced, debounced, h, icon, repeated, setText } from "../dom.js";
import { count } from "../format.js";
import { planText } from "../kinds/plan-text.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { kindOf } from "../kinds/registry.js";
import { isLeftOut, leftOutText } from "./left-out.js";
import { showMissed } from "./missed.js";
import { createOrigin } from "../objects/origin.js";
import { PAGE } from "./query-pages.js";
import { createFigures, createNeighbours, focusNote, missedNote, staleNote } from "./query-answer.js";
import { createRoles } from "./query-roles.js";
import { aboutText, answerWords, emptyText, limitText, numbered } from "./query-words.js";
import { canBeWatched } from "../kinds/rule/form.js";
import { createSketched } from "../kinds/sketch/card.js";
import { sketchText } from "../kinds/sketch/words.js";
import { stateText } from "../states.js";
import { mayEdit, mayShare } from "../teams/rights.js";
import { unitsName } from "../units.js";
import { warningTexts } from "./warnings.js";

const REFRESH_MS = 200;
const AGES_MS = 1000;
const SEARCH_MS = 250;
const NEAR_PX = 200; // a card that is almost in view counts as in view

/**
 * @param {Record<string, any>} pages QueryPages
 * @param {Record<string, any>} actions `zoom`, `show`, `edit`, `pause`, `share`, `cancel`, `events`, `alarm`: functions of a query; `now()`; `pick(slot)`;
 *   `object(stream, key, place)`; `roles(query, told)`, which asks to be told how a query is answered, or ends that; `seen()`,
 *   called when other cards are in view or open
 * @returns {Record<string, any>} with `open(number)`, which unfolds a query's card and brings it into view; `all()`, which ends a search;
 *   `close()`, which folds all cards; `cards` and `opened`, the sets of the queries whose cards are in view and open
 */
export function createQueryList(store, pages, actions) {
  const rows = new Map();
  const list = $("query-list");
  const cards = new Set();
  const opened = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        cards[isIntersecting ? "add" : "delete"](Number(target.dataset.query));
      actions.seen();
    },
    { root: $("pane-queries"), rootMargin: `${NEAR_PX}px 0px` },
  );
  const unfolded = (number, open) => {
    opened[open ? "add" : "delete"](number);
    actions.seen();
  };
  const remove = (number, { element }) => {
    observer.unobserve(element);
    element.remove();
    if (opened.has(number)) actions.roles(number, false);
    for (const known of [rows, cards, opened]) known.delete(number);
  };
  const render = () => {
    const queries = pages.listed();
    const numbers = new Set(queries.map((q) => q.query));
    for (const [number, row] of rows) if (!numbers.has(number)) remove(number, row);
    let before = null;
    for (const query of queries) {
      if (!rows.has(query.query)) {
        const row = createRow(store, query.query, { ...actions, unfolded });
        rows.set(query.query, row);
        observer.observe(row.element);
      }
      const { element, update: renew } = rows.get(query.query);
      if (!element.isConnected || element.previousElementSibling !== before)
        list.insertBefore(element, before ? before.nextSibling : list.firstChild);
      renew(query);
      before = element;
    }
    renderPaging(pages, queries.length);
  };
  store.on("queries objects places figures roles streams layers teams", coalesced(render, REFRESH_MS));
  repeated(render, AGES_MS); // a focal object falls silent with time alone
  $("query-more").addEventListener("click", () => pages.showMore());
  $("query-search").addEventListener(
    "input",
    debounced(() => pages.find($("query-search").value), SEARCH_MS),
  );
  render();
  const all = () => {
    $("query-search").value = "";
    return pages.find("");
  };
  const open = (number) => {
    all();
    render();
    rows.get(number)?.open();
  };
  const close = () => {
    for (const number of [...opened]) rows.get(number)?.close();
  };
  return { open, close, all, render, cards, opened };
}

/** Show how many queries there are, and, if there are more than one page, what finds and brings the others. */
function renderPaging(pages, listed) {
  const all = pages.count();
  const many = all > PAGE || pages.search !== "";
  const { found, more, failed } = pages;
  setText($("query-count"), all > 0 ? count(all) : "");
  $("queries-empty").dataset.known = String(pages.known); // it says nothing before, but has its place
  $("queries-empty").hidden = listed > 0 || many || failed; // shown from the start: on a phone, the map would move when it comes
  $("query-paging").hidden = !many;
  const texts = { all: count(all), listed: count(listed), found: count(found?.total ?? 0) };
  const listedWords =
    listed === all ? ngettext("%(all)s query", "%(all)s queries", all) : gettext("%(listed)s of %(all)s queries");
  setText($("query-total"), filled(found ? gettext("%(found)s of %(all)s queries match") : listedWords, texts));
  $("query-more").hidden = !(more && (many || failed));
  const rest = (found?.total ?? all) - listed;
  setText(
    $("query-more"),
    failed ? gettext("Try again") : filled(gettext("Show %(count)s more"), { count: count(Math.min(PAGE, rest)) }),
  );
  $("query-more").disabled = pages.loading;
  const list = $("query-list");
  if (list.ariaBusy !== String(pages.loading)) list.ariaBusy = String(pages.loading);
}

function createRow(store, number, actions) {
  const act = (name) => () => actions[name](store.queries.get(number));
  const button = (name, symbol, text, kind = "") =>
    h(
      "button",
      {
        type: "button",
        class: `quiet small icon ${kind}`,
        onclick: act(name),
        "data-action": name,
        "aria-label": text,
        title: text,
      },
      icon(symbol),
    );
  const parts = {
    swatch: h("button", { type: "button", class: "swatch", onclick: act("show") }, icon("eye")),
    name: h("span", { class: "query-name" }),
    about: h("span", { class: "query-about", id: `query-about-${number}` }),
    origin: createOrigin(),
    status: h("span", { class: "pill" }),
    count: h("span", { class: "query-count" }),
    focus: h("p", { class: "query-focus notice", role: "status", hidden: true }),
    note: h("p", { class: "query-note hint", hidden: true }),
    error: h("p", { class: "field-error", hidden: true }),
    warning: h("p", { class: "query-warning notice", role: "status", hidden: true }),
    warnings: h("div", { class: "query-warnings" }),
    alarm: button("alarm", "bell", gettext("Alarm")),
    edit: button("edit", "edit", gettext("Edit")),
    pause: button("pause", "pause", gettext("Pause")),
    share: button("share", "share", gettext("Share")),
    cancel: button("cancel", "trash", gettext("Delete"), "danger"),
  };
  const figures = createFigures(store, number, (key, place) =>
    actions.object(store.queries.get(number).plan.stream, key, place),
  );
  const sketched = createSketched(store, number);
  const menu = h(
    "div",
    { class: "query-actions", role: "group", "aria-label": gettext("Actions") },
    button("zoom", "zoom", gettext("Zoom to")),
    button("events", "list", gettext("Events")),
    parts.alarm,
    parts.edit,
    parts.pause,
    parts.share,
    parts.cancel,
  );
  const more = h("div", { class: "query-more", id: `query-more-${number}`, hidden: true });
  const main = h(
    "button",
    {
      type: "button",
      class: "query-main quiet",
      "aria-expanded": "false",
      "aria-controls": more.id,
      "aria-describedby": parts.about.id,
    },
    parts.name,
    parts.count,
    parts.status,
  );
  const row = h(
    "div",
    { class: "query-row" },
    parts.swatch,
    main,
    h("div", { class: "query-line" }, parts.about, parts.origin.element),
    menu,
  );
  const element = h(
    "li",
    { class: "query query-card", "data-query": number },
    row,
    figures.element,
    sketched.element,
    parts.focus,
    parts.note,
    parts.error,
    parts.warning,
    parts.warnings,
    more,
  );
  const updates = [
    (query) => update(store, query, element, parts, actions.now()),
    (query) => figures.update(query, actions.now()),
    sketched.update,
  ];
  const fill = () => {
    const unfolded = [
      createNeighbours(store, number, actions.pick),
      createRoles(store, number, (open) => actions.roles(number, open)),
    ];
    for (const part of unfolded) {
      more.append(part.element);
      updates.push(part.update);
      part.update(store.queries.get(number));
    }
  };
  const unfold = (shown) => {
    if (shown && !more.firstChild) fill(); // most cards are never opened
    more.hidden = !shown;
    element.dataset.open = shown;
    main.setAttribute("aria-expanded", String(shown));
    actions.unfolded(number, shown);
  };
  // An attribute shows the actions, since :has(:focus-visible) hides an action at the moment when the focus goes to it.
  row.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && (row.dataset.focus = "true"));
  row.addEventListener("focusout", ({ relatedTarget }) => !row.contains(relatedTarget) && delete row.dataset.focus);
  row.addEventListener(
    "click",
    ({ target }) => (main.contains(target) || !target.closest("button, .query-actions")) && unfold(more.hidden),
  );
  const open = () => (unfold(true), element.scrollIntoView({ block: "nearest" }));
  let before = [];
  const refresh = (query) => {
    const inputs = inputsOf(store, query, actions.now());
    const follows = query.plan?.around || query.plan?.aggregate || !more.hidden; // what moves, or changes with time alone
    if (!follows && inputs.every((input, i) => input === before[i])) return;
    before = inputs;
    for (const one of updates) one(query);
  };
  return { element, open, close: () => unfold(false), update: refresh };
}

/**
 * Return all that a closed card shows of a query that does not move. Of a thousand cards, only those are written again
 * for which one of these values has changed.
 */
function inputsOf(store, query, nowMs) {
  const { join } = query.plan ?? {};
  const partner = join?.layer ? store.layers.get(join.layer) : store.streams.get(join?.stream);
  const counts = [store.pairCount(query.query), store.toldCount(query.query), store.lastingCount(query.query)];
  const answer = [
    store.answered(query.query),
    store.awaited.has(query.query),
    store.count(query.query),
    ...counts,
    store.sketched.get(query.query),
  ];
  return [
    query,
    query.shown,
    store.streams.get(query.stream),
    partner,
    ...answer,
    waits(store, query, nowMs),
    leftOutText(query, nowMs + store.clockOffsetMs),
    staleNote(store, nowMs),
    missedNote(store, query.query),
    unitsName(),
    store.teams,
  ];
}

/** Return whether a query waits to start until the engine answers again. */
function waits(store, query, nowMs) {
  return query.status === "pending" && store.connection(nowMs) === "down";
}

function update(store, query, element, parts, nowMs) {
  const paused = query.status === "paused";
  element.dataset.status = query.status;
  element.dataset.shown = query.shown;
  element.style.setProperty("--colour", `var(--q${query.colour})`);
  element.dataset.line = query.line;
  setHint(
    parts.swatch,
    filled(query.shown ? gettext("Hide %(name)s on the map") : gettext("Show %(name)s on the map"), query),
  );
  parts.swatch.setAttribute("aria-pressed", String(query.shown));
  setText(parts.name, query.name);
  parts.name.title = query.name;
  const stream = store.streams.get(query.stream)?.title ?? query.stream;
  const titleOf = (source, name, limit) => {
    if (source === "value") return limitText(store.queries.get(name)?.plan, limit);
    if (source === "query") return store.queries.get(name)?.name ?? numbered(name);
    return (source === "layer" ? store.layers : store.streams).get(name)?.title ?? name;
  };
  const asked = kindOf(query.plan).asked
    ? sketchText(query.plan)
    : planText(query.plan, titleOf, focusName(store, query));
  setText(parts.about, aboutText(store, query, stream, asked));
  parts.about.title = parts.about.textContent;
  parts.origin.update(store.streams.get(query.stream));
  const serverMs = nowMs + store.clockOffsetMs;
  const stale = query.status === "running" ? staleNote(store, nowMs) : "";
  const state = isLeftOut(query, serverMs) ? "left_out" : query.status;
  showState(parts.status, state, stale !== "");
  showAnswer(store, { ...query, status: state }, parts.count);
  const focus = focusNote(store, query, nowMs);
  showNotice(parts.focus, focus);
  const starting = waits(store, query, nowMs);
  const [told, lasting] = [store.toldCount(query.query), store.lastingCount(query.query)];
  const missing = leftOutText(query, serverMs);
  const empty =
    query.status === "running" &&
    !missing &&
    store.answers.has(query.query) &&
    (told ?? lasting ?? store.count(query.query)) === 0 &&
    !focus;
  element.dataset.stale = String(stale !== "");
  parts.note.hidden = !starting && !empty && !stale;
  setText(
    parts.note,
    starting ? gettext("It starts when the engine answers again.") : stale || emptyText(stream, told, lasting),
  );
  showNotice(parts.error, query.error);
  showNotice(parts.warning, missing, query.warning);
  showWarnings(parts.warnings, warningTexts(query, serverMs));
  showMissed(store, query.query, element, parts);
  setHint(parts.pause, paused ? gettext("Resume") : gettext("Pause"));
  parts.pause.querySelector("use").setAttribute("href", paused ? "#icon-play" : "#icon-pause");
  setHint(parts.share, query.shared ? gettext("Stop sharing") : gettext("Share"));
  parts.alarm.hidden = !canBeWatched(query);
  for (const name of ["edit", "pause", "cancel"]) parts[name].hidden = !mayEdit(store, query);
  parts.share.hidden = !mayShare(store, query);
  parts.pause.hidden ||= !["running", "paused", "waiting"].includes(query.status);
}

/** Show the state of a query; one that runs is not up to date while nothing new can come. */
function showState(element, state, stale) {
  element.dataset.status = stale && state === "running" ? "stale" : state;
  setText(element, stateText(element.dataset.status));
  element.title = element.textContent;
}

/** Show those of some texts that there are. */
function showNotice(element, ...texts) {
  const text = texts.filter(Boolean).join(" ");
  element.hidden = !text;
  setText(element, text);
}

/** Show each warning as a notice of its own; those that stay are not written again. */
function showWarnings(element, texts) {
  while (element.children.length > texts.length) element.lastChild.remove();
  for (const [place, text] of texts.entries()) {
    if (!element.children[place]) element.append(h("p", { class: "query-warning notice" }));
    setText(element.children[place], text);
  }
}

/** Give a name to a button that shows only an icon, for the pointer and for screen readers. */
function setHint(button, text) {
  button.setAttribute("aria-label", text);
  button.title = text;
}

/** Show what the answer of a query comes to. */
function showAnswer(store, query, element) {
  const { text, title, raised } = answerWords(store, query);
  setText(element, text);
  element.title = title;
  element.classList.toggle("raised", raised);
}

/** Return what the focal object of a query is called; undefined if it is not known. */
function focusName(store, { query, plan }) {
  if (!plan?.around?.key) return undefined;
  const place = store.places.get(query);
  return place?.key === plan.around.key ? place.name : undefined;
}
