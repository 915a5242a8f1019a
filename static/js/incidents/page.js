// Puts the parts of incidents together: the list, the title of the page, and the sound.

import { $ } from "../dom.js";
import { gettext } from "../i18n.js";
import { IncidentPages } from "./pages.js";
import { IncidentPanel } from "./panel.js";
import { Sound } from "./sound.js";
import { pageTitle } from "./words.js";

const MINUTES_MS = 5 * 60_000;
const RECOUNT_MS = 1000;

/**
 * @param {Record<string, any>} parts `store`; `now()`; `ask(message)`, returning a promise of the reply; `open()`, whether the list is in view;
 *   `onPick(incident)`; `trace(stream, key, span)`, which draws where an object was; `onError(text)`
 */
export function createIncidents({ store, now, ask, trace, onError, ...rest }) {
  const sound = new Sound({ now });
  const pages = new IncidentPages({
    ask,
    take: (reply) => store.apply(reply, now()),
    onError: (error) => error.code !== "offline" && onError(error.message),
  });
  const panel = new IncidentPanel({
    store,
    pages,
    ask,
    onError,
    now: () => now() + store.clockOffsetMs,
    onWay: ({ stream, key, opened }) =>
      trace(stream, key, { from: Date.parse(opened) - MINUTES_MS, to: Date.parse(opened) + MINUTES_MS }),
    ...rest,
  });
  let counting = false;
  store.on("incidents", () => {
    document.title = pageTitle(store.incidents.total);
    sound.play(...store.incidents.takeFresh().map(({ severity }) => severity));
    if (!store.incidents.unsure || counting) return;
    counting = true;
    setTimeout(async () => {
      await pages.recount();
      counting = false;
    }, RECOUNT_MS);
  });
  const { show, opened, showAwaited } = createOpening(panel, pages);
  createMute(sound);
  /** Take note of a message of the server, before the store applies it: the list is asked for anew where incidents may be missing. */
  const follow = ({ type, query, severity }) => {
    const shared = type === "query.status" && Boolean(severity) && !store.queries.has(query);
    if (shared || ["hello", "changes.missed"].includes(type)) panel.reload().then(showAwaited);
  };
  return { panel, follow, show, opened };
}

/** Open the incident of an address: as soon as the list has come, since there may be no connection yet. */
function createOpening(panel, pages) {
  let awaited = null;
  const opened = () => awaited ?? panel.chosen;
  const show = (number) => {
    if (number === opened()) return;
    awaited = pages.asked ? null : number;
    if (number === null) panel.choose(panel.chosen);
    else if (pages.asked) panel.show(number);
  };
  const showAwaited = () => {
    if (awaited === null || !pages.asked) return;
    panel.show(awaited);
    awaited = null;
  };
  return { show, opened, showAwaited };
}

function createMute(sound) {
  const button = $("incident-mute");
  const show = () => {
    button.setAttribute("aria-pressed", String(sound.muted));
    button.title = sound.muted
      ? gettext("Sound is off; press to switch it on")
      : gettext("Sound is on; press to switch it off");
    button.querySelector("use").setAttribute("href", sound.muted ? "#icon-muted" : "#icon-sound");
  };
  button.addEventListener("click", () => {
    sound.mute(!sound.muted);
    show();
  });
  show();
}
