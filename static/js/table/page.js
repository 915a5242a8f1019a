// Puts together the table of objects and the watch list, and joins them with the map.

import { $, coalesced } from "../dom.js";
import { count, title } from "../format.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { onEscape } from "../page-events.js";
import { recall, remember } from "../remembered.js";
import { toast } from "../toasts.js";
import { TablePanel } from "./panel.js";
import { Rows } from "./rows.js";
import { playAlarm } from "./sound.js";
import { Members, readSource } from "./sources.js";
import { WatchAlarms } from "./watch-alarms.js";
import { MOST_WATCHED, WatchList } from "./watch-list.js";

const LOOK_MS = 1000; // between two looks at how long ago watched objects were heard of

/**
 * @param {Record<string, any>} parts `store`; `map`, a MonitorMap; `navigation`; `now()`; `shown(stream)`; `onAddress()`, called when the state for
 *   the address changes; `onSubscribe()`, called when `whole`, `watched` or `query` may have changed
 */
export function createTable({ store, map, navigation, now, shown, onAddress, onSubscribe }) {
  let pointed; // slot of the row under the pointer, or at the keyboard
  const watch = new WatchList(recall("watch"), () => {
    remember("watch", watch.kept());
    showStar();
    showSettings();
    map.objects.invalidate();
    panel.collect();
    onSubscribe();
  });
  const alarms = new WatchAlarms({
    store,
    watch,
    raise: (text, rising) => {
      toast(text, "watch");
      if (watch.settings.sound) playAlarm(rising);
    },
  });
  const star = (stream, key) => {
    const slot = store.objects.slot(stream, key);
    const name = slot === undefined ? key : title(key, store.objects.properties(slot));
    if (watch.toggle(stream, key, name) === null)
      toast(
        filled(gettext("The watch list may have %(count)s objects; it has as many already."), {
          count: count(MOST_WATCHED),
        }),
        "error",
      );
  };
  const starSelected = () => {
    if (store.selected) star(store.selected.stream, store.selected.key);
    else toast(gettext("Select an object to watch it."));
  };
  const panel = new TablePanel({
    store,
    rows: new Rows({ store, members: new Members({ store, bounds: () => map.bounds(), shown, watch }) }),
    watch,
    now,
    onPick: (slot) => navigation.pick(slot),
    onPoint: (slot) => {
      pointed = slot;
      map.objects.invalidate();
    },
    onStar: (slot) => star(store.objects.streams[slot], store.objects.keys[slot]),
    onChange: () => {
      onAddress();
      onSubscribe();
    },
    remembered: recall("table"),
    onRemember: (kept) => remember("table", kept),
  });

  const showStar = () => {
    const { selected } = store;
    $("object-star").setAttribute(
      "aria-pressed",
      String(Boolean(selected && watch.has(selected.stream, selected.key))),
    );
  };
  const form = $("table-watch");
  const showSettings = () => {
    const { crossings, silence, sound, silentMin } = watch.settings;
    for (const [name, on] of Object.entries({ crossings, silence, sound })) form.elements[name].checked = on;
    form.elements.silentMin.value = silentMin;
    form.elements.silentMin.disabled = !silence;
    $("table-watch-count").textContent = filled(
      ngettext("%(count)s object has a star.", "%(count)s objects have a star.", watch.size),
      { count: count(watch.size) },
    );
    $("table-watch-clear").disabled = watch.size === 0;
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", ({ target }) => {
    if (!target.name || !target.checkValidity()) return;
    watch.set({ [target.name]: target.type === "checkbox" ? target.checked : target.valueAsNumber });
    if (target.name === "sound" && target.checked) playAlarm(true); // the user hears what it is, and the browser allows it from now on
  });
  $("table-watch-clear").addEventListener("click", () => watch.clear());
  $("object-star").addEventListener("click", starSelected);
  $("open-table").addEventListener("click", toggle);
  store.on("selection", showStar);
  store.on("events", () => alarms.follow());
  map.leaflet.on(
    "moveend",
    coalesced(() => panel.collect(), 100),
  );
  setInterval(() => alarms.look(now()), LOOK_MS);
  showStar();
  showSettings();

  const source = () => (panel.open ? readSource(panel.source) : {});
  function toggle() {
    if (panel.open) panel.close();
    else {
      panel.show();
      $("table-grid").focus({ preventScroll: true });
    }
  }
  onEscape("table", () => panel.escape());
  return {
    toggle,
    starSelected,
    /** Show what an address holds, as `tableOf` reads it; null closes the table. */
    turn(state) {
      if (state) panel.show(state);
      else if (panel.open) panel.close();
    },
    /** The state of the table, as the address holds it; null if it is closed. */
    state: () => panel.state(),
    /** Streams of which the table lists all objects. */
    get whole() {
      const { stream } = source();
      return stream === undefined ? [] : [stream];
    },
    /** The query whose answer the table lists. */
    get query() {
      return source().query;
    },
    /** The keys of the watched objects by stream. */
    get watched() {
      return watch.byStream();
    },
    /** What the map marks: `pointed`, a slot or undefined, and the slots that are watched. */
    marks: () => ({
      pointed,
      watched: [...watch.all()]
        .map(({ stream, key }) => store.objects.slot(stream, key))
        .filter((slot) => slot !== undefined),
    }),
  };
}
