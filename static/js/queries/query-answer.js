// What a query's card shows of its answer: figures with their course, notes on its focal object, its nearest neighbours.

import { h, setText } from "../dom.js";
import { age, count, figureText, groupName, length, thresholdText, title, utcClock } from "../format.js";
import { KEPT_MS } from "./figures.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { kindOf } from "../kinds/registry.js";
import { createSparkline } from "./sparkline.js";

const MOST_GROUPS = 12;
const MOST_NEIGHBOURS = 50;

/** Make the figures of an aggregate: a row for each group, with the thresholds that it has crossed. */
export function createFigures(store, number, onObject) {
  const element = h("div", { class: "query-figures", hidden: true });
  const rows = new Map();
  const more = h("p", { class: "hint", hidden: true });
  const list = h("ul", { class: "figures" });
  element.append(list, more);
  const update = (query, nowMs) => {
    const answer = store.figures.get(number);
    const { aggregate } = query.plan;
    element.hidden = !answer || query.status !== "running";
    if (element.hidden) return;
    const shown = aggregate?.group_by ? answer.ranked() : [["", answer.groups.get("") ?? { value: null, points: [] }]];
    const groups = new Map(shown.slice(0, MOST_GROUPS));
    for (const [group, row] of rows) {
      if (groups.has(group)) continue;
      row.element.remove();
      rows.delete(group);
    }
    for (const [group, figure] of groups) {
      if (!rows.has(group)) rows.set(group, createFigure(group, onObject));
      rows.get(group).update(query, figure, answer.raisedBy(group), nowMs, store);
    }
    const order = [...groups.keys()].map((group) => rows.get(group).element);
    if (order.some((row, i) => list.children[i] !== row)) list.replaceChildren(...order);
    more.hidden = shown.length <= MOST_GROUPS;
    setText(more, moreText(shown.length - MOST_GROUPS));
  };
  return { element, update };
}

function moreText(number) {
  return filled(ngettext("and %(count)s more group", "and %(count)s more groups", number), { count: count(number) });
}

function createFigure(group, onObject) {
  const spark = createSparkline();
  const parts = {
    name: h("span", { class: "figure-name" }),
    value: h("span", { class: "figure-value" }),
    object: h("button", {
      type: "button",
      class: "quiet small figure-object",
      hidden: true,
      onclick: () => onObject(parts.key, parts.place),
    }),
    thresholds: h("ul", { class: "chips" }),
  };
  const element = h(
    "li",
    { class: "figure", "data-group": group },
    parts.name,
    spark.element,
    parts.value,
    parts.object,
    parts.thresholds,
  );
  const update = ({ plan }, figure, raised, nowMs, store) => {
    const { aggregate } = plan;
    const grouped = Boolean(aggregate.group_by);
    parts.name.hidden = !grouped;
    setText(parts.name, groupName(group, aggregate));
    parts.value.hidden = !grouped; // without groups, the card shows the figure large
    setText(parts.value, figureText(figure.value, aggregate));
    parts.value.title = figureText(figure.value, aggregate);
    spark.update(figure.points, nowMs, KEPT_MS, (value) => figureText(value, aggregate));
    parts.object.hidden = !figure.object;
    if (figure.object) {
      Object.assign(parts, { key: figure.object, place: [figure.lon, figure.lat] });
      const slot = store.objects.slot(plan.stream, figure.object);
      setText(parts.object, slot === undefined ? figure.object : title(figure.object, store.objects.properties(slot)));
    }
    element.classList.toggle("raised", raised.length > 0);
    thresholds(parts.thresholds, aggregate, raised, grouped);
  };
  return { element, update };
}

/** Show the thresholds, with the crossed ones lit; for a group, show only the crossed ones. */
function thresholds(list, { thresholds: all = [], property }, raised, grouped) {
  const names = grouped ? raised : all.map(thresholdName);
  const texts = names.map((name) => thresholdText(name, property));
  const wanted = JSON.stringify([texts, raised]);
  if (list.dataset.shown === wanted) return;
  list.dataset.shown = wanted;
  list.replaceChildren(
    ...names.map((name, i) => h("li", { class: "threshold", "data-raised": String(raised.includes(name)) }, texts[i])),
  );
}

/** Return the name that the engine gives to a threshold. */
export function thresholdName({ above, below, for_s: seconds }) {
  const limit = above === undefined || above === null ? `below ${below}` : `above ${above}`;
  return seconds ? `${limit} for ${seconds} s` : limit;
}

/** Return a note if the focal object of a query is silent, is lost, or has not reported yet; else an empty text. */
export function focusNote(store, query, nowMs) {
  const { around } = query.plan ?? {};
  if (!around?.key || query.status !== "running" || !store.answered(query.query)) return "";
  const place = store.places.get(query.query);
  if (!place || !(place.timeMs > 0)) return filled(gettext("No report of %(name)s yet."), { name: around.key });
  const texts = { name: place.name, time: age(store.focusAgeMs(query.query, nowMs)) };
  const lost = gettext(
    "%(name)s is lost: its last report was %(time)s ago. The answer is empty until it reports again.",
  );
  if (place.lost) return filled(lost, texts);
  return store.focusSilent(query.query, nowMs)
    ? filled(gettext("%(name)s is silent: its last report was %(time)s ago."), texts)
    : "";
}

/** Return since when an answer is old, "As of 12:00:00 UTC.", while nothing new can come; else an empty text. */
export function staleNote(store, nowMs) {
  const cut = ["offline", "reconnecting", "down", "full", "signed-out"].includes(store.connection(nowMs));
  const asOfMs = Number.isFinite(store.dataMs) ? store.dataMs : store.engine.atMs; // or when it was the newest
  return cut && Number.isFinite(asOfMs)
    ? filled(gettext("As of %(time)s UTC."), { time: utcClock(asOfMs + store.clockOffsetMs) })
    : "";
}

/** Return how much of an answer that is told once was not sent to this page; an empty text if nothing is missing. */
export function missedNote(store, query) {
  const missed = store.missedOf(query);
  if (!missed) return "";
  if (missed.count === 0)
    return gettext("Some entries and exits may not have been sent: changes were lost on the way.");
  const words = missed.uncounted
    ? ngettext(
        "At least %(count)s entry or exit was not sent: this connection was too slow.",
        "At least %(count)s entries and exits were not sent: this connection was too slow.",
        missed.count,
      )
    : ngettext(
        "%(count)s entry or exit was not sent: this connection was too slow.",
        "%(count)s entries and exits were not sent: this connection was too slow.",
        missed.count,
      );
  return filled(words, { count: count(missed.count) });
}

/** Make the list of nearest neighbours, in the order of their ranks. */
export function createNeighbours(store, number, onPick) {
  const list = h("ol", { class: "neighbours", "aria-label": gettext("Nearest neighbours") });
  const update = (query) => {
    const neighbours = kindOf(query.plan).ranked ? (store.answers.get(number)?.neighbours() ?? []) : [];
    const shown = neighbours.slice(0, MOST_NEIGHBOURS);
    list.hidden = shown.length === 0;
    while (list.children.length > shown.length) list.lastChild.remove();
    shown.forEach(({ slot, rank, distance }, i) => {
      if (!list.children[i]) list.append(createNeighbour(onPick));
      const row = list.children[i];
      row.dataset.slot = slot;
      const [place, name, away] = row.firstChild.children;
      setText(place, String(rank));
      setText(name, title(store.objects.keys[slot], store.objects.properties(slot)));
      setText(away, length(distance));
    });
  };
  return { element: list, update };
}

function createNeighbour(onPick) {
  const button = h(
    "button",
    { type: "button", class: "quiet neighbour" },
    h("span", { class: "neighbour-rank" }),
    h("span", { class: "neighbour-name" }),
    h("span", { class: "neighbour-away" }),
  );
  const row = h("li", {}, button);
  button.addEventListener("click", () => onPick(Number(row.dataset.slot)));
  return row;
}
