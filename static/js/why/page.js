// "Why?" on the page: asks for explanations, shows them in the panel, and draws the border that decides.

import { $, offer } from "../dom.js";
import { gettext } from "../i18n.js";
import { kindOf } from "../kinds/registry.js";
import { onEscape, pageEvents } from "../page-events.js";
import { BorderLine } from "./line.js";
import { WhyPanel } from "./panel.js";
import { lineTo } from "./words.js";

const REFRESH_MS = 5000;
// Events are stored some seconds after the page has heard them.
const AGAIN_MS = 1000;
const MOST_ASKED = 10;

/**
 * @param {Record<string, any>} parts `L`; `map`, Leaflet's map; `store`; `colour()`, that of the line; `ask(message)`, returning a promise of
 *   the reply
 */
export function createWhy({ L, map, store, colour, ask }) {
  const line = new BorderLine(L, map, colour);
  const select = $("object-why");
  let asked = null; // {message, key}
  let timer = null;
  const panel = new WhyPanel({
    onClose: () => {
      asked = null;
      select.value = "";
      clearTimeout(timer);
      line.show(null);
    },
    onRefresh: () => tell(),
  });

  function begin(message, title, about, opener = document.activeElement) {
    asked = { message, key: title };
    panel.begin(title, about, opener);
    line.show(null);
    tell(true);
  }

  /** Ask, and show the answer unless another question was asked meanwhile. */
  async function tell(first = false) {
    clearTimeout(timer);
    const question = asked;
    if (!question) return;
    const told = await answer(question).catch((error) => error);
    if (asked !== question) return;
    if (told instanceof Error) return panel.fail(told.message);
    question.told = told;
    panel.show(told, question.key);
    line.show(told.fix ? lineTo(told.why) : null);
    if (first) line.fit(panel.covers);
    if (question.message.type === "why.object") timer = setTimeout(() => tell(), REFRESH_MS);
  }

  async function answer(question) {
    for (let count = 1; ; count++) {
      try {
        return await ask(question.message);
      } catch (error) {
        if (error.code !== "event" || count === MOST_ASKED || asked !== question) throw error;
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    }
  }

  function ofEvent(event) {
    const { query, queryName, sign, timeMs, threshold, group } = event;
    const about = threshold ? { key: group, partner: threshold } : { key: event.key, partner: event.partnerKey ?? "" };
    const message = {
      type: "why.event",
      query,
      sign: sign > 0 ? "+" : "-",
      time_us: Math.round(timeMs * 1000),
      ...about,
    };
    begin(message, about.key || queryName, queryName);
  }

  select.addEventListener("change", () => {
    const query = store.queries.get(Number(select.value));
    const { stream, key } = store.selected ?? {};
    if (query && key !== undefined)
      begin({ type: "why.object", query: query.query, stream, key }, key, query.name, select);
  });
  const choices = () => {
    const { selected } = store;
    const known = selected
      ? store.listed().filter(({ plan }) => plan?.stream === selected.stream && !kindOf(plan).asked)
      : [];
    offer(
      select,
      [["", [["", gettext("In, or not in…")], ...known.map(({ query, name }) => [String(query), name])]]],
      asked ? select.value : "",
    );
    select.disabled = known.length === 0;
  };
  store.on("selection queries", choices);
  store.on("selection", () => {
    const { key } = asked?.message ?? {};
    if (asked?.message.type === "why.object" && store.selected?.key !== key) panel.close();
    select.value = "";
  });

  pageEvents.on("theme units", () => asked?.told && panel.show(asked.told, asked.key));
  onEscape("why", () => panel.close());

  return {
    ofEvent,
    ofIncident: ({ incident, key, name }) => begin({ type: "why.incident", incident }, key || name, name),
  };
}
