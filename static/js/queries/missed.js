// What a query's card says of entries and exits that were not sent to this page, and the list of those that are kept.

import { h, setText } from "../dom.js";
import { count, reason, SIGNS, utcClock, utcTime } from "../format.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { namingOf } from "../objects/named.js";
import { missedNote } from "./query-answer.js";
import { keptEvents } from "../replay/api.js";

/** Say how many of the kept events are listed. */
export function keptText({ listed, kept }) {
  if (kept === 0) return gettext("No event of this query is kept.");
  return filled(
    ngettext(
      "%(listed)s of %(count)s event that is kept of this query, the newest first",
      "%(listed)s of the newest %(count)s events, which are all that is kept of this query",
      kept,
    ),
    { listed: count(listed), count: count(kept) },
  );
}

/**
 * The events that are kept of a query, page by page.
 *
 * @param {number} query
 * @param {(query: number, before: number | null) => Promise<Record<string, any>>} [page] see `keptEvents`
 */
export function createKept(query, page = keptEvents) {
  const kept = { events: [], next: null, kept: 0, listed: 0, begun: false, loading: false, failed: "" };
  /** Bring the next page; nothing happens while one is on its way, or after the last. */
  kept.more = async () => {
    if (kept.loading || (kept.begun && kept.next === null)) return [];
    Object.assign(kept, { loading: true, failed: "" });
    try {
      const found = await page(query, kept.next);
      kept.events.push(...found.events);
      Object.assign(kept, { next: found.next, kept: found.kept, listed: kept.events.length, begun: true });
      return found.events;
    } catch (error) {
      kept.failed = error.message;
      return [];
    } finally {
      kept.loading = false;
    }
  };
  return kept;
}

/** Show on a card what was missed of its query; few cards ever need the note, which is made when it is first needed. */
export function showMissed(store, number, card, parts) {
  const text = missedNote(store, number);
  if (text && !parts.missed) {
    parts.missed = createMissed(store, number);
    card.insertBefore(parts.missed.element, card.lastChild);
  }
  parts.missed?.update(text);
}

function createMissed(store, number) {
  const text = h("p", {});
  const dismiss = h("button", { type: "button", class: "quiet small" }, gettext("Dismiss"));
  let list = createList(store, number);
  const element = h("div", { class: "query-missed notice", hidden: true }, text, list, dismiss);
  dismiss.addEventListener("click", () => {
    list.replaceWith((list = createList(store, number)));
    store.told.missed.delete(number);
    store.emit("queries");
  });
  const update = (words) => {
    element.hidden = words === "";
    setText(text, words);
  };
  return { element, update };
}

/** Return the list of the events that are kept of a query, with the button that brings them page by page. */
function createList(store, number) {
  const kept = createKept(number);
  const about = h("p", { class: "hint", role: "status", hidden: true });
  const list = h("ol", { class: "missed-events", hidden: true });
  const more = h("button", { type: "button", class: "small", "data-action": "missed" }, gettext("Show what is kept"));
  more.hidden = store.user === ""; // a guest has no login to ask with
  more.addEventListener("click", async () => {
    const naming = namingOf(store, store.queries.get(number)?.plan);
    list.append(...(await kept.more()).map((event) => row(event, naming)));
    about.hidden = false;
    setText(about, kept.failed || keptText(kept));
    list.hidden = kept.listed === 0;
    more.hidden = kept.begun && kept.next === null;
    if (kept.begun) setText(more, gettext("Show more"));
  });
  return h("div", {}, about, list, more);
}

/** Return the row of a kept event: its sign, its object and partner, why, and when. */
function row({ sign, key, partner, reason: why, time_us: timeUs }, naming) {
  const code = sign === "+" ? 1 : -1;
  const name = [key && naming.object(key), partner && naming.partner(partner)].filter(Boolean).join(" \u00b7 ");
  const timeMs = timeUs / 1000;
  return h("li", { title: `${reason(why, code)}\n${utcTime(timeMs)}` }, `${SIGNS[code]} ${name}, ${utcClock(timeMs)}`);
}
