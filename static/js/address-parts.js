// Connects each key of the address with the part of the page that it is about.

import { FilterError } from "./display-filter/cql2.js";
import { plainly } from "./queries/filter-words.js";
import { filled, gettext } from "./i18n.js";
import { pageEvents } from "./page-events.js";
import { toast } from "./toasts.js";

const PATIENCE_MS = 20_000; // for the queries to come, before one of an address is told to be missing

/**
 * @param {any} address
 * @param {Record<string, any>} parts `store`, `tabs`, `panel`, `queryList`, `pages`, `incidents`, `symbology`, `displayFilter`, `theme`, `kiosk`, `replay`
 */
export function connectParts(
  address,
  { store, tabs, panel, queryList, pages, incidents, symbology, displayFilter, theme, kiosk, replay },
) {
  address.connect("kiosk", kiosk);
  address.connect("tab", { get: tabs.current, set: (name) => name !== tabs.current() && tabs.show(name) });
  address.connect("query", openQuery(store, queryList, pages));
  address.connect("incident", { get: incidents.opened, set: incidents.show });
  incidents.panel.onChoose = () => address.write();
  address.connect("select", {
    get: () => store.selected && { stream: store.selected.stream, key: store.selected.key },
    set: (object) =>
      JSON.stringify(object) !== JSON.stringify(store.selected) && store.select(object?.stream ?? null, object?.key),
  });
  address.connect("follow", { get: () => panel.following, set: (on) => panel.setFollow(on) });
  address.connect("filter", { get: displayFilter.text, set: (text) => filtered(displayFilter, text) });
  address.connect("colour", symbology.colour);
  address.connect("steps", symbology.steps);
  address.connect("trail", symbology.trail);
  address.connect("vector", symbology.vector);
  address.connect("replay", { get: replay.state, set: replay.turn });
  address.connect("theme", { get: theme.chosen, set: theme.show });
  store.on("selection", () => address.write());
  pageEvents.on("theme", () => address.write());
}

/** Show only what a filter of an address leaves; say so if it is wrong. */
function filtered(displayFilter, text) {
  try {
    displayFilter.set(text);
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    toast(`${gettext("The filter of the address is ignored.")} ${plainly(error.message)}`, "error");
  }
}

/** The query whose card is open. One that is not listed yet is opened when it comes. */
function openQuery(store, queryList, pages) {
  let awaited = null;
  const show = () => {
    if (awaited === null || !pages.listed().some(({ query }) => query === awaited)) return;
    const number = awaited;
    awaited = null;
    queryList.open(number);
  };
  const missing = (number) => {
    if (awaited !== number) return;
    awaited = null;
    toast(filled(gettext("The query %(number)s of the address is not in your list."), { number }), "error");
  };
  store.on("queries", show);
  return {
    get: () => awaited ?? [...queryList.opened].at(-1) ?? null,
    set: (number) => {
      if (number === (awaited ?? [...queryList.opened].at(-1) ?? null)) return;
      queryList.close();
      awaited = number;
      if (number !== null) setTimeout(() => missing(number), PATIENCE_MS);
      show();
    },
  };
}
