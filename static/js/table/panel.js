// The panel with the table of objects, below the map: what is listed, how it is filtered and sorted, and how often it is sorted anew.

import { CSV } from "../csv.js";
import { $, coalesced, debounced, h, offer, repeated, setText } from "../dom.js";
import { count } from "../format.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { staleNote } from "../queries/query-answer.js";
import { aboutColumn, FIRST_COLUMNS } from "./columns.js";
import { fromAddress, toAddress } from "./conditions.js";
import { csv, geoJson } from "./export.js";
import { Grid } from "./grid.js";
import { hasObjects, readSource, VIEW, WATCHED } from "./sources.js";

const VALUES_MS = 250; // between two times that values are written
const SORT_MS = 1000; // between two times that the rows are sorted anew; it takes at most one part in `SHARE` of the time,
const SHARE = 15;
const LONGEST_MS = 5000; // unless they would wait for longer than this
const AGES_MS = 1000;
const WRITE_MS = 200; // after a key, before rows are filtered
const LEAST_PX = 150;
const STEP_PX = 32;
const FIRST_PX = 300;

// How many objects of each kind of source there are.
const COUNTED = {
  view: (n) => ngettext("%(count)s object in view", "%(count)s objects in view", n),
  watched: (n) => ngettext("%(count)s object of the watch list", "%(count)s objects of the watch list", n),
  query: (n) => ngettext("%(count)s object in the answer", "%(count)s objects in the answer", n),
  stream: (n) => ngettext("%(count)s object of the stream", "%(count)s objects of the stream", n),
};

export class TablePanel {
  store;
  rows;
  watch;
  now;
  onPick;
  onPoint;
  onStar;
  onChange;
  remembered;
  onRemember;

  /**
   * @param {Record<string, any>} parts `store`; `rows`, a Rows; `watch`, a WatchList; `now()`; `onPick(slot)`; `onPoint(slot)`; `onStar(slot)`;
   *   `onChange()`, called when the address or what is subscribed to may change; `remembered`, `{columns, height}` or null;
   *   `onRemember(kept)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    const { remembered } = this;
    this.open = false;
    this.source = VIEW;
    this.columns =
      Array.isArray(remembered?.columns) && remembered.columns.length > 0 ? remembered.columns : FIRST_COLUMNS;
    this.height = remembered?.height ?? FIRST_PX;
    this.held = false;
    this.costMs = 0;
    this.timer = null;
    this.box = $("table");
    this.rows.show(this.columns);
    this.grid = new Grid($("table-grid"), {
      rows: this.rows,
      watch: this.watch,
      now: this.now,
      selected: () => this.store.selectedSlot(),
      onSort: (name) => this.#sort(name),
      onCondition: (name, written) => this.#condition(name, written),
      onPick: this.onPick,
      onPoint: this.onPoint,
      onStar: this.onStar,
    });
    this.#controls();
    this.#grip();
    const values = coalesced(() => this.open && this.grid.refresh(), VALUES_MS);
    this.store.on("objects", () => {
      values();
      this.#collectLater();
    });
    this.store.on(
      "streams queries",
      coalesced(() => this.open && this.#describe(), VALUES_MS),
    );
    this.store.on("selection", () => this.open && this.#follow());
    repeated(() => this.open && this.grid.refresh(), AGES_MS);
  }

  /** Open the table, with what `tableOf` read from an address, or as it was. */
  show(state = null) {
    if (state) {
      this.source = state.source;
      if (state.sort) this.rows.sortBy(state.sort.name, state.sort.descending);
      this.rows.search = $("table-search").value = state.search;
      this.rows.conditions = new Map(state.conditions.map(([name, written]) => [name, fromAddress(name, written)]));
      const more = [state.sort?.name, ...state.conditions.map(([name]) => name)].filter(
        (name) => name && !this.columns.includes(name),
      );
      this.columns = [...this.columns, ...new Set(more)];
      this.rows.show(this.columns);
    }
    this.open = true;
    document.body.dataset.table = "open";
    this.box.hidden = false;
    this.#resize(this.height);
    this.grid.show(this.columns);
    this.onChange();
    this.collect();
  }

  close() {
    const inside = this.box.contains(document.activeElement);
    this.open = false;
    delete document.body.dataset.table;
    this.box.hidden = true;
    this.onPoint(undefined);
    this.onChange();
    if (inside) $("map").focus({ preventScroll: true });
  }

  /** Close the table if the keyboard is in it; return whether it did. */
  escape() {
    const inside = this.open && this.box.contains(document.activeElement);
    if (inside) this.close();
    return inside;
  }

  /** The state for the address; null while the table is closed. */
  state() {
    if (!this.open) return null;
    const { sorts, search, conditions } = this.rows;
    const told = [...conditions].map(([name, written]) => [name, toAddress(name, written)]);
    return { source: this.source, sort: sorts[0], search, conditions: told };
  }

  /** List other objects. */
  list(source) {
    this.source = source;
    this.onChange();
    this.collect();
  }

  /** Collect, filter and sort the rows now. */
  collect() {
    if (!this.open) return;
    clearTimeout(this.timer);
    this.timer = null;
    const began = performance.now();
    this.rows.refresh(readSource(this.source), this.now());
    this.costMs = performance.now() - began;
    performance.measure("lookout:table", { start: began, end: began + this.costMs, detail: { rows: this.rows.n } });
    performance.clearMeasures("lookout:table");
    this.grid.refresh();
    this.#describe();
  }

  /** Collect the rows once a while: not more often than it leaves nearly all of the time to the map. */
  #collectLater() {
    if (!this.open || this.held || this.timer !== null) return;
    this.timer = setTimeout(
      () => {
        this.timer = null;
        if (!this.held) this.collect();
      },
      Math.min(LONGEST_MS, Math.max(SORT_MS, SHARE * this.costMs)),
    );
  }

  #sort(name) {
    this.rows.sortBy(name);
    this.grid.sorted();
    this.onChange();
    this.collect();
  }

  #condition(name, written) {
    const wrong = this.rows.setCondition(name, written);
    this.filterSoon();
    return wrong;
  }

  #follow() {
    this.grid.reveal(this.store.selectedSlot());
    this.grid.refresh();
  }

  #controls() {
    this.filterSoon = debounced(() => {
      this.onChange();
      this.collect();
    }, WRITE_MS);
    $("table-source").addEventListener("change", ({ target }) => this.list(target.value));
    $("table-search").addEventListener("input", ({ target }) => {
      this.rows.search = target.value;
      this.filterSoon();
    });
    $("table-hold").addEventListener("click", ({ currentTarget }) => {
      this.held = !this.held;
      currentTarget.setAttribute("aria-pressed", String(this.held));
      if (!this.held) this.collect();
    });
    $("table-close").addEventListener("click", () => this.close());
    $("table-csv").addEventListener("click", () => this.#save("csv", CSV, csv));
    $("table-geojson").addEventListener("click", () => this.#save("geojson", "application/geo+json", geoJson));
    $("table-columns").addEventListener("change", ({ target }) => this.#choose(target.value, target.checked));
    $("table-columns-reset").addEventListener("click", () => this.#showColumns(FIRST_COLUMNS));
    for (const menu of this.box.querySelectorAll(".table-menu")) {
      menu.addEventListener("toggle", () => menu.open && this.#offerColumns());
      document.addEventListener("pointerdown", ({ target }) => !menu.contains(target) && (menu.open = false));
      menu.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || !menu.open) return;
        event.stopPropagation();
        menu.open = false;
        menu.firstElementChild.focus();
      });
    }
  }

  #choose(name, on) {
    const others = this.columns.filter((other) => other !== name);
    if (on) this.#showColumns([...others, name]);
    else if (others.length > 0) this.#showColumns(others);
    else this.#offerColumns(); // the last one stays
  }

  #showColumns(names) {
    this.columns = names;
    for (const name of this.rows.conditions.keys()) if (!names.includes(name)) this.rows.conditions.delete(name); // what is not seen filters nothing
    this.rows.show(names);
    this.onRemember({ columns: names, height: this.height });
    this.collect();
    this.grid.show(names);
    this.#offerColumns();
    this.onChange();
  }

  #offerColumns() {
    const box = $("table-columns");
    const choices = [...new Set([...this.rows.choices(), ...this.columns])];
    const wanted = choices.join("\n");
    if (box.dataset.offered !== wanted) {
      box.dataset.offered = wanted;
      box.replaceChildren(
        ...choices.map((name) => {
          const title = name.startsWith("@") ? null : name;
          return h(
            "label",
            { class: "choice", title },
            h("input", { type: "checkbox", value: name }),
            h("span", {}, aboutColumn(name).label),
          );
        }),
      );
    }
    for (const input of box.querySelectorAll("input")) input.checked = this.columns.includes(input.value);
  }

  /** Say what is listed, and how much of it. */
  #describe() {
    const { streams, queries } = this.store;
    offer(
      $("table-source"),
      [
        [
          "",
          [
            [VIEW, gettext("In view")],
            [WATCHED, filled(gettext("Watch list (%(count)s)"), { count: count(this.watch.size) })],
          ],
        ],
        [
          gettext("All objects of a stream"),
          [...streams.values()]
            .filter(({ enabled }) => enabled !== false)
            .map(({ name, title }) => [`stream:${name}`, title ?? name]),
        ],
        [
          gettext("In the answer of a query"),
          [...queries.values()].filter(hasObjects).map(({ query, name }) => [`query:${query}`, name]),
        ],
      ],
      this.source,
    );
    setText($("table-status"), [this.#statusText(), staleNote(this.store, this.now())].filter(Boolean).join(" "));
    this.#absent();
  }

  #statusText() {
    const { n, of } = this.rows;
    const { kind, query, stream } = readSource(this.source);
    const { streams, queries } = this.store;
    if (kind === "query" && !queries.has(query)) return gettext("This query is not there any more.");
    if (kind === "query" && !this.store.answered(query)) return gettext("Waiting for the answer…");
    if (kind === "stream" && !streams.has(stream)) return gettext("This stream is not there any more.");
    const filtered =
      n === of ? count(of) : filled(gettext("%(shown)s of %(total)s"), { shown: count(n), total: count(of) });
    return filled(COUNTED[kind](of), { count: filtered });
  }

  /** Say which watched objects the page has not heard of. */
  #absent() {
    const { objects } = this.store;
    const absent =
      this.source === WATCHED
        ? [...this.watch.all()].filter(({ stream, key }) => objects.slot(stream, key) === undefined)
        : [];
    const box = $("table-absent");
    box.hidden = absent.length === 0 && !(this.source === WATCHED && this.watch.size === 0);
    const wanted = absent.map(({ stream, key }) => `${stream}\n${key}`).join("\n\n");
    if (box.dataset.absent === wanted) return;
    box.dataset.absent = wanted;
    const remove = ({ stream, key, title }) =>
      h(
        "button",
        {
          type: "button",
          class: "small",
          title: gettext("Remove from the watch list"),
          onclick: () => this.watch.toggle(stream, key),
        },
        `${title} \u00d7`,
      );
    if (absent.length > 0) box.replaceChildren(gettext("No recent report of:"), " ", ...absent.map(remove));
    else
      box.replaceChildren(
        gettext("Star objects to watch them: here, in the panel of the selected object, or with the key w."),
      );
  }

  #save(ending, type, write) {
    this.collect();
    const url = URL.createObjectURL(new Blob([write(this.rows, this.columns)], { type }));
    const name = `lookout-${this.source.replace(/[^\w-]+/g, "-")}-${new Date(this.now()).toISOString().slice(0, 19).replaceAll(":", "")}.${ending}`;
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  #grip() {
    const grip = $("table-grip");
    const keep = () => this.onRemember({ columns: this.columns, height: this.height });
    grip.addEventListener("pointerdown", (event) => {
      const begun = { y: event.clientY, height: this.box.offsetHeight };
      const move = ({ clientY }) => this.#resize(begun.height + begun.y - clientY);
      grip.setPointerCapture(event.pointerId);
      grip.addEventListener("pointermove", move);
      grip.addEventListener(
        "lostpointercapture",
        () => {
          grip.removeEventListener("pointermove", move);
          keep();
        },
        { once: true },
      );
    });
    grip.addEventListener("keydown", (event) => {
      const step = { ArrowUp: STEP_PX, ArrowDown: -STEP_PX }[event.key];
      if (!step) return;
      event.preventDefault();
      this.#resize(this.box.offsetHeight + step);
      keep();
    });
    window.addEventListener("resize", () => this.open && this.#resize(this.height));
  }

  #resize(height) {
    const most = Math.max(LEAST_PX, Math.round(0.75 * window.innerHeight));
    this.height = Math.round(Math.min(Math.max(height, LEAST_PX), most));
    document.body.style.setProperty("--table", `${this.height}px`);
    for (const [name, value] of [
      ["valuenow", this.height],
      ["valuemin", LEAST_PX],
      ["valuemax", most],
    ])
      $("table-grip").setAttribute(`aria-${name}`, value);
  }
}
