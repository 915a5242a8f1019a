// The panel of the selected object, which can follow it, and the tooltip of what is under the pointer.

import { $, coalesced, h, repeated, setText } from "../dom.js";
import { rowTime } from "../history/history.js";
import { objectRows } from "./object-rows.js";
import { createOrigin } from "./origin.js";
import { age, altitude, count, parsed, place, properties, title, utcTime } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { onEscape } from "../page-events.js";

const REFRESH_MS = 200;
const AGES_MS = 1000;
const MOST_PARTNERS = 5;
const MOST_ROWS = 14; // of the tooltip

export class ObjectPanel {
  store;
  now;
  onFollow;
  onLocate;
  onTrails;
  onHistory;
  onAround;
  onFollowing;

  /**
   * @param {Record<string, any>} parts `store`; `now()`; `onFollow(slot)`; `onLocate(slot)`; `onTrails(on)`; `onHistory(stream, key)`;
   *   `onAround(stream, key, point)`; `onFollowing()`, called when it begins or ends to follow
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.following = false;
    this.origin = createOrigin();
    $("object-kind").after(this.origin.element);
    $("object-close").addEventListener("click", () => this.store.select(null));
    onEscape("selection", () => {
      this.store.select(null);
      /** @type {any} */ (document.activeElement)?.blur();
      return true;
    });
    $("object-follow").addEventListener("click", () => this.setFollow(!this.following));
    $("object-locate").addEventListener("click", () => {
      const slot = this.store.selectedSlot();
      if (slot !== undefined) this.onLocate(slot);
    });
    $("object-trails").addEventListener("click", ({ currentTarget }) => {
      const on = currentTarget.getAttribute("aria-pressed") !== "true";
      this.onTrails(on);
    });
    $("object-history").addEventListener("click", () =>
      this.onHistory(this.store.selected.stream, this.store.selected.key),
    );
    $("object-around").addEventListener("click", ({ currentTarget }) => {
      const { left, bottom } = currentTarget.getBoundingClientRect();
      this.onAround(this.store.selected.stream, this.store.selected.key, { x: left, y: bottom + 4 });
    });
    this.store.on("selection", () => {
      this.setFollow(false);
      this.refresh();
    });
    this.store.on(
      "objects",
      coalesced(() => this.refresh(), REFRESH_MS),
    );
    repeated(() => this.refresh(), AGES_MS);
  }

  setFollow(on) {
    const changed = on !== this.following;
    this.following = on;
    $("object-follow").setAttribute("aria-pressed", String(on));
    if (changed) this.onFollowing();
  }

  showTrails(on) {
    $("object-trails").setAttribute("aria-pressed", String(on));
  }

  refresh() {
    const { selected } = this.store;
    $("object-panel").hidden = !selected;
    if (!selected) return;
    $("object-history").hidden = !this.store.streams.get(selected.stream)?.stored;
    const slot = this.store.selectedSlot();
    $("object-gone").hidden = slot !== undefined;
    for (const id of ["object-follow", "object-locate"]) $(id).disabled = slot === undefined;
    if (slot === undefined) return setText($("object-title"), this.lastTitle ?? selected.key);
    const { objects } = this.store;
    const known = objects.properties(slot);
    this.lastTitle = title(selected.key, known);
    setText($("object-title"), this.lastTitle);
    setText(
      $("object-kind"),
      `${this.store.streams.get(selected.stream)?.title ?? selected.stream} \u00b7 ${selected.key}`,
    );
    this.origin.update(this.store.streams.get(selected.stream));
    this.#answers(slot);
    const where = [
      ...(Number.isFinite(objects.alt[slot]) && known.altitude_m === undefined
        ? [[gettext("Altitude"), altitude(objects.alt[slot])]]
        : []),
      [gettext("Position"), place(objects.lon[slot], objects.lat[slot])],
      [gettext("Last report"), utcTime(objects.timeMs[slot])],
      [gettext("Age"), age(this.store.ageMs(slot, this.now()))],
      ...this.#partners(slot),
    ];
    fill($("object-properties"), objectRows(known, [this.lastTitle, selected.key], where));
    if (this.following) this.onFollow(slot);
  }

  #partners(slot) {
    const names = this.store.partnersOf(slot).map((partner) => title(partner.key, parsed(partner.properties)));
    const shown = [...new Set(names)];
    if (shown.length === 0) return [];
    const first = shown.slice(0, MOST_PARTNERS).join(", ");
    const more = count(shown.length - MOST_PARTNERS);
    return [
      [
        gettext("With"),
        shown.length > MOST_PARTNERS
          ? filled(gettext("%(names)s and %(count)s more"), { names: first, count: more })
          : first,
      ],
    ];
  }

  #answers(slot) {
    const queries = this.store.objects.queries[slot].map((number) => this.store.queries.get(number)).filter(Boolean);
    const wanted = queries.map((q) => `${q.query} ${q.name} ${q.colour}`).join();
    if (this.shownAnswers === wanted) return;
    this.shownAnswers = wanted;
    $("object-answers").replaceChildren(
      ...queries.map((query) => {
        const chip = h("li", { class: "chip" }, query.name);
        chip.style.setProperty("--colour", `var(--q${query.colour})`);
        return chip;
      }),
    );
  }
}

/** Return rows that say, by query, how many objects a feature is paired with. */
export function countRows(store, layer, key) {
  return store
    .joinsOf(layer)
    .map(({ query, counts }) => [query.name, filled(gettext("%(count)s now"), { count: count(counts.get(key) ?? 0) })]);
}

/** Write the rows of a description list, in place, so that a selection of text survives. */
export function fill(list, rows) {
  while (list.children.length > 2 * rows.length) list.lastChild.remove();
  rows.forEach(([name, text], i) => {
    if (!list.children[2 * i]) list.append(h("dt"), h("dd"));
    setText(list.children[2 * i], name);
    setText(list.children[2 * i + 1], text);
  });
}

/** The tooltip: it follows the pointer over the map, and shows the present properties of the object or feature under it. */
export class Tooltip {
  store;
  map;
  layer;
  features;
  history;
  density;
  now;
  disabled;
  onPick;
  onPickFeature;
  onPickRow;

  /**
   * @param {Record<string, any>} parts `store`; `map`, Leaflet's map; `layer`, that of the objects; `features`, a FeatureLayers; `history`, a
   *   HistoryLayer; `density`, a Density; `now()`; `disabled()`; `onPick(slot)`; `onPickFeature(found)`; `onPickRow(index)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.box = $("tooltip");
    this.map.on("mousemove", ({ containerPoint }) => this.#over(containerPoint));
    this.map.on("mouseout movestart zoomstart", () => this.hide());
    this.map.on("click", ({ containerPoint }) => this.#click(containerPoint));
    this.refresh = coalesced(() => this.point && this.#show(), REFRESH_MS);
    this.store.on("objects pairs queries layers", this.refresh);
    onEscape("tooltip", () => this.hide());
  }

  /** Hide it until the pointer moves again. */
  hide() {
    this.point = null;
    this.#clear();
  }

  #clear() {
    this.box.hidden = true;
    this.features.hover(null);
    this.map.getContainer().classList.remove("over-object");
  }

  #click(point) {
    if (this.disabled()) return;
    this.hide();
    const slot = this.layer.hit(point);
    const row = slot === undefined ? this.history.hit(point) : undefined;
    const feature = slot === undefined && row === undefined ? this.features.hit(point) : undefined;
    if (row !== undefined) this.onPickRow(row);
    else if (feature) this.onPickFeature(feature);
    else this.onPick(slot);
  }

  #over(point) {
    this.point = point;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.point) this.#show();
    });
  }

  #show() {
    if (this.disabled()) return this.#clear();
    const slot = this.layer.hit(this.point);
    const row = slot === undefined ? this.history.hit(this.point) : undefined;
    const feature = slot === undefined && row === undefined ? this.features.hit(this.point) : undefined;
    const cell = slot === undefined && row === undefined && !feature ? this.density.hit(this.point) : undefined;
    if (slot === undefined && row === undefined && !feature && !cell) return this.#clear();
    this.map.getContainer().classList.toggle("over-object", !cell);
    this.features.hover(feature);
    if (cell) this.#cell(cell);
    else if (feature) this.#feature(feature);
    else if (row !== undefined) this.#row(this.history.rows[row]);
    else this.#object(slot);
    this.box.hidden = false;
    this.#place();
  }

  #object(slot) {
    const { objects } = this.store;
    const known = objects.properties(slot);
    const answers = objects.queries[slot].map((number) => this.store.queries.get(number)?.name).filter(Boolean);
    setText(this.box.querySelector("h3"), title(objects.keys[slot], known));
    setText(
      this.box.querySelector("p"),
      [objects.keys[slot], age(this.store.ageMs(slot, this.now())), ...answers].join(" \u00b7 "),
    );
    const head = [title(objects.keys[slot], known), objects.keys[slot]];
    fill(this.box.querySelector("dl"), objectRows(known, head).slice(0, MOST_ROWS));
  }

  #feature({ layer, key, properties: known }) {
    setText(this.box.querySelector("h3"), title(key, known));
    setText(this.box.querySelector("p"), [this.store.layers.get(layer)?.title ?? layer, key].join(" \u00b7 "));
    const counts = countRows(this.store, layer, key);
    fill(this.box.querySelector("dl"), [...counts, ...properties(known)].slice(0, MOST_ROWS));
  }

  #cell({ title: name, about, rows }) {
    setText(this.box.querySelector("h3"), name);
    setText(this.box.querySelector("p"), about);
    fill(this.box.querySelector("dl"), rows);
  }

  #row(row) {
    const known = row.properties ?? {};
    setText(this.box.querySelector("h3"), title(row.key, known));
    const partner = row.partner && filled(gettext("with %(partner)s"), { partner: row.partner.key });
    setText(this.box.querySelector("p"), [row.key, rowTime(row), partner].filter(Boolean).join(" \u00b7 "));
    fill(this.box.querySelector("dl"), objectRows(known, [title(row.key, known), row.key]).slice(0, MOST_ROWS));
  }

  #place() {
    const size = this.map.getSize();
    const { offsetWidth, offsetHeight } = this.box;
    const left = this.point.x + 18 + offsetWidth > size.x ? this.point.x - offsetWidth - 14 : this.point.x + 18;
    const top = Math.max(8, Math.min(this.point.y + 14, size.y - offsetHeight - 8));
    this.box.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
  }
}
