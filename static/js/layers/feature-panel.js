// Shows the properties of the selected feature of a layer; changes, deletes and draws features. Each edit makes a new version.

import { confirmed } from "../confirm.js";
import { $, coalesced, setText } from "../dom.js";
import { properties, title } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { begunJoin } from "../kinds/join/plan.js";
import { countRows, fill } from "../objects/object-panel.js";
import { onEscape, pageEvents } from "../page-events.js";
import { areaAbout } from "../shapes.js";
import { units } from "../units.js";

const REFRESH_MS = 250;
const MOST_CHARACTERS = 100; // of a query's name
const HINTS = {
  Point: gettext("Click on the map to place the point."),
  LineString: gettext("Click from place to place; a double click, or Finish, ends the line."),
  Polygon: gettext("Click corner by corner; a double click, or Finish, ends the polygon."),
};
const EDIT_HINT = gettext(
  "Drag a corner, or the middle of an edge for a new one. A double click, or Delete, removes a corner.",
);
const CROWDED_HINT = gettext("Too many corners are in view: zoom in to change them.");
const CONFLICT = gettext(
  "Somebody else saved version %(version)s first, so your change is not saved. Save again to add your change to theirs, or discard it.",
);

export class FeaturePanel {
  store;
  api;
  editor;
  features;
  done;
  watch;

  /** @param {Record<string, any>} parts `store`; `api`, a LayersApi; `editor`, a FeatureEditor; `features`, FeatureLayers; `done(text)`; `watch(plan, name)`, which begins a query */
  constructor(parts) {
    Object.assign(this, parts);
    this.editing = null; // {layer, key, version, properties, fresh}
    this.form = $("feature-form");
    $("feature-close").addEventListener("click", () => this.store.selectFeature(null));
    $("feature-edit").addEventListener("click", () => this.#edit(this.store.selectedFeature));
    $("feature-watch").addEventListener("click", () => this.#watch(this.store.selectedFeature));
    $("feature-delete").addEventListener("click", () => this.#delete(this.store.selectedFeature));
    $("feature-discard").addEventListener("click", () => this.close());
    $("feature-finish").addEventListener("click", () => this.editor.finish());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.store.on("selection", () => this.#selected());
    pageEvents.on("units", () => this.refresh());
    onEscape("feature", () => this.close());
    this.store.on(
      "layers pairs",
      coalesced(() => this.refresh(), REFRESH_MS),
    );
  }

  /** Draw a new feature of a layer: a "Point", "LineString" or "Polygon". */
  draw(layer, kind) {
    const key = `drawn-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
    this.store.selectFeature({ layer: layer.name, key, properties: {} });
    this.#begin({ layer: layer.name, key, version: layer.version, properties: {}, fresh: true });
    this.editor.draw(kind);
    this.refresh();
  }

  /** End an edit without saving it. Return whether there was one. */
  close() {
    if (!this.editing) return false;
    const { fresh } = this.editing;
    this.#end();
    if (fresh) this.store.selectFeature(null);
    else this.refresh();
    return true;
  }

  refresh() {
    const { selectedFeature: feature } = this.store;
    $("feature-panel").hidden = !feature;
    if (!feature) return;
    const { editing } = this;
    const layer = this.store.layers.get(feature.layer);
    setText($("feature-title"), editing?.fresh ? gettext("New feature") : title(feature.key, feature.properties));
    setText(
      $("feature-kind"),
      [layer?.title ?? feature.layer, ...(editing?.fresh ? [] : [feature.key])].join(" \u00b7 "),
    );
    fill(
      $("feature-properties"),
      editing ? [] : [...countRows(this.store, feature.layer, feature.key), ...properties(feature.properties)],
    );
    $("feature-actions").hidden = Boolean(editing);
    this.form.hidden = !editing;
    if (!editing) return;
    const { kind, crowded } = this.editor;
    setText($("feature-hint"), kind ? HINTS[kind] : crowded ? CROWDED_HINT : EDIT_HINT);
    $("feature-finish").hidden = !kind || kind === "Point";
    $("feature-save").hidden = Boolean(kind);
  }

  #selected() {
    const { selectedFeature: feature } = this.store;
    if (this.editing && (feature?.layer !== this.editing.layer || feature.key !== this.editing.key)) this.#end();
    this.#error("");
    this.refresh();
  }

  #begin(editing) {
    this.editing = editing;
    this.form.elements.name.value = editing.properties.name ?? "";
    this.#error("");
  }

  #end() {
    this.editing = null;
    this.features.hide(null);
    this.editor.stop();
    this.#error("");
  }

  async #edit({ layer, key }) {
    try {
      const { version } = this.store.layers.get(layer);
      const { features } = await this.api.features(layer, { version, key });
      if (features.length === 0) throw new Error(gettext("This feature was deleted by somebody else."));
      const { selectedFeature: now } = this.store;
      if (now?.layer !== layer || now.key !== key) return;
      const [{ geometry, properties: known }] = features;
      if (!this.editor.edit(geometry))
        throw new Error(gettext("This feature has several kinds of geometry. It cannot be changed here."));
      this.#begin({ layer, key, version, properties: known ?? {}, fresh: false });
      this.features.hide({ layer, key });
      this.refresh();
    } catch (error) {
      this.#error(error.message);
    }
  }

  /**
   * Begin a query about a feature: in its polygon, in a corridor about its line, or in a circle about its point. What an area
   * cannot be, such as a feature of several lines, is watched by a join with the layer, with this feature alone.
   */
  async #watch({ layer, key, properties: known }) {
    try {
      const { features } = await this.api.features(layer, { version: this.store.layers.get(layer).version, key });
      if (features.length === 0) throw new Error(gettext("This feature was deleted by somebody else."));
      const { radiusM } = units();
      const area = areaAbout(features[0].geometry, { radiusM, widthM: radiusM / 10 });
      const join = begunJoin({ layer, predicate: "intersects", filters: [{ key }] });
      this.store.selectFeature(null); // the panel would cover the handles
      this.watch(area ? { kind: "range", area } : join, title(key, known).slice(0, MOST_CHARACTERS));
    } catch (error) {
      this.#error(error.message);
    }
  }

  async #delete({ layer, key, properties: known }) {
    if (
      !(await confirmed(
        filled(gettext("Delete \u201c%(name)s\u201d from the layer?"), { name: title(key, known) }),
        gettext("Delete"),
      ))
    )
      return;
    const { version } = this.store.layers.get(layer);
    if (await this.#send(layer, { version, remove: [key] })) {
      this.store.selectFeature(null);
      this.done(gettext("Deleted."));
    }
  }

  async #save() {
    const { layer, key, version, properties: before } = this.editing;
    const name = this.form.elements.name.value.trim();
    const { name: _, ...others } = before;
    const known = name ? { ...before, name } : others;
    const feature = { type: "Feature", id: key, geometry: this.editor.geometry(), properties: known };
    $("feature-save").disabled = true;
    const saved = await this.#send(layer, { version, upsert: [feature] });
    $("feature-save").disabled = false;
    if (!saved) return;
    this.#end();
    this.store.selectFeature({ layer, key, properties: known });
    this.done(filled(gettext("Saved as version %(version)s."), { version: saved }));
  }

  /** Send an edit and return the new version; after an error, show it and return nothing. */
  async #send(layer, edit) {
    this.#error("");
    try {
      return await this.api.edit(layer, edit);
    } catch (error) {
      this.#error(error.status === 409 ? await this.#conflict(layer, edit.version, error.message) : error.message);
    }
  }

  /** Explain a conflict, and base the next save on the newest version. */
  async #conflict(layer, version, message) {
    const newest = (await this.api.list()).find(({ name }) => name === layer)?.version;
    if (!newest || newest === version) return message; // the layer is being imported
    if (this.editing) this.editing.version = newest;
    return filled(CONFLICT, { version: newest });
  }

  #error(text) {
    setText($("feature-error"), text);
    $("feature-error").hidden = !text;
  }
}
