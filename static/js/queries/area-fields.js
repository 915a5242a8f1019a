// The part of the query form for areas that are polygons, circles or corridors: drawing, handles, fields, size and count.

import { CircleDrawing } from "../map/circle-drawing.js";
import { $, coalesced, setText } from "../dom.js";
import { DrawnArea } from "../map/drawn-area.js";
import { FeatureEditor } from "../layers/feature-editor.js";
import { count, length, shapeText, square } from "../format.js";
import { rectangleOf, turnTowards } from "../geometry.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { measureFields } from "../measure-field.js";
import { onEscape, pageEvents } from "../page-events.js";
import { LENGTH } from "../quantities.js";
import {
  boxAround,
  changeOf,
  cornersFrom,
  cornersOf,
  cornersText,
  crossesItself,
  formOf,
  lineLength,
  moved,
  MOST_VERTICES,
  normalised,
  placesOf,
  polygonsOf,
  sizeOf,
} from "../shapes.js";
import { units } from "../units.js";
import { WidthHandle } from "../map/width-handle.js";

const COUNT_MS = 200;
const TYPES = { polygon: "Polygon", corridor: "LineString" };
const HINTS = {
  polygon: gettext("Click corner by corner. A double click, or Enter, ends the polygon."),
  circle: gettext("Press on the centre and drag outwards. A tap takes the radius of the form."),
  corridor: gettext("Click from place to place. A double click, or Enter, ends the line."),
};

const MISSING = {
  polygon: gettext("Draw a polygon on the map, or type its numbers."),
  circle: gettext("Draw a circle on the map, or type its numbers."),
  corridor: gettext("Draw a corridor on the map, or type its numbers."),
};
const EDIT_HINTS = {
  polygon: gettext(
    "Drag a corner, or the middle of an edge for a new one. A double click, or Delete, removes a corner.",
  ),
  circle: gettext("Drag the centre, or the handle of the radius."),
  corridor: gettext(
    "Drag a corner, the middle of an edge for a new one, or the handle of the width. A double click, or Delete, removes a corner.",
  ),
};

export class AreaFields {
  L;
  map;
  store;
  form;
  colour;
  onChange;
  other;
  stream;
  filtered;
  onError;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `store`; `form`, the query form's element; `colour()`; `onChange()`, called when the area changes
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map }, parts);
    this.area = null;
    this.editor = new FeatureEditor(L, map, {
      colour: this.colour,
      onChange: () => this.#follow(),
      onDrag: () => this.#follow(),
    });
    this.circle = new CircleDrawing(L, map, {
      onCircle: (center, radius) =>
        this.#take({
          circle: { center: this.#inWorld(center), radius_m: radius ?? this.#metres("areaRadius") ?? units().radiusM },
        }),
      onEnd: () => this.#refresh(),
    });
    this.width = new WidthHandle(L, map, (width) => this.#resize(width));
    const { elements } = this.form;
    this.measures = measureFields(elements, { areaRadius: LENGTH, areaWidth: LENGTH });
    for (const radio of elements.areaForm) radio.addEventListener("change", () => this.#choose());
    for (const name of ["areaLon", "areaLat", "areaRadius", "areaWidth"])
      elements[name].addEventListener("input", () => this.#fromFields());
    elements.corners.addEventListener("change", () => this.#fromCorners());
    $("area-draw").addEventListener("click", () => this.draw());
    $("shape-undo").addEventListener("click", () => this.editor.undo());
    $("shape-finish").addEventListener("click", () => this.editor.finish());
    $("shape-stop").addEventListener("click", () => this.cancel());
    this.recount = coalesced(() => this.#count(), COUNT_MS);
    this.store.on("objects", () => this.counting && this.recount());
    map.on("moveend", () => this.counting && this.recount());
    map.on("moveend", () => this.shown && this.chosen === "corridor" && !this.drawing && this.#overlay());
    pageEvents.on("theme", () => this.shown && this.#overlay()); // the editor has drawn itself already
    onEscape("area", () => this.cancel());
  }

  /** The chosen form: "rectangle", "polygon", "circle" or "corridor". */
  get chosen() {
    return this.form.elements.areaForm.value;
  }

  /** The name of the element that gets the focus if the area is wrong. */
  get first() {
    return { rectangle: "west", circle: "areaLon" }[this.chosen] ?? "corners";
  }

  /** Whether the chosen form is not a rectangle. */
  get shaped() {
    return this.chosen !== "rectangle";
  }

  get drawing() {
    return this.editor.kind !== null || this.circle.waiting || Boolean(this.circle.abort);
  }

  /** Whether an area is drawn or has handles. */
  get active() {
    return this.drawing || this.editor.active;
  }

  /** Take over the area of a plan; `before`, the saved area of the query, is what the count compares with. */
  start(area, before) {
    this.stop();
    this.before = before;
    this.area = formOf(area) ? area : null;
    this.form.elements.areaForm.value = formOf(area) ?? "rectangle";
    this.#fields();
  }

  /** Show the fields, and on the map the area with its handles, if `on` and if the form is no rectangle; `other` is the rectangle. */
  show(on, { stream, filtered, other }) {
    const fields = on && this.shaped;
    $("rectangle-fields").hidden = this.shaped;
    $("shape-fields-area").hidden = !this.shaped;
    for (const name of ["circle", "corridor"]) $(`${name}-fields`).hidden = this.chosen !== name;
    $("corners-field").hidden = this.chosen === "circle";
    Object.assign(this, { stream, filtered, other });
    const was = this.shown;
    this.shown = fields;
    if (!fields) this.stop();
    else if (!was && this.area) this.#edit();
    this.counting = on;
    this.recount();
  }

  /** Return the area; null for a rectangle, and until one is drawn. */
  read() {
    return this.shaped && formOf(this.area) === this.chosen ? this.area : null;
  }

  /** Return the plan of a range that is drawn, with its handles, like the area; null unless that is a circle. */
  around() {
    const { circle } = this.read() ?? {};
    return circle && this.shown ? { around: { at: circle.center, radius: circle.radius_m } } : null;
  }

  /** Take over a circle that was changed on the map. */
  setCircle({ around: { at, radius } }) {
    this.#take({ circle: { center: at, radius_m: radius } });
  }

  /** What is missing or wrong, in words; empty if nothing is. */
  error() {
    if (!this.shaped) return "";
    if (this.drawing && this.chosen !== "circle") return gettext("Finish the drawing first: press Enter, or Finish.");
    const area = this.read();
    if (!area) return MISSING[this.chosen];
    if (placesOf(area).length > MOST_VERTICES) {
      const words = gettext("An area has at most %(most)s corners; this one has %(count)s.");
      return filled(words, { most: count(MOST_VERTICES), count: count(placesOf(area).length) });
    }
    if (this.chosen === "polygon" && polygonsOf(area).flat().some(crossesItself))
      return gettext("The outline of the polygon crosses itself. Move a corner.");
    return "";
  }

  /** Let the user draw the chosen form anew. */
  draw() {
    this.#clear();
    if (this.chosen === "circle") this.circle.draw();
    else this.editor.draw(TYPES[this.chosen]);
    this.map.getContainer().focus({ preventScroll: true });
    this.#refresh();
  }

  /** End a drawing without a result; show the area that there was. */
  cancel() {
    if (!this.drawing) return false;
    this.#clear();
    if (this.area) this.#edit();
    this.#refresh();
    return true;
  }

  /** Remove everything from the map. */
  stop() {
    this.#clear();
    this.shown = this.counting = false;
    this.#refresh();
  }

  #clear() {
    this.editor.stop();
    this.circle.stop();
    this.width.remove();
    this.corridor?.remove();
    this.corridor = null;
  }

  #choose() {
    this.#clear();
    if (this.shaped && formOf(this.area) !== this.chosen) {
      this.area = null;
      this.#fields();
      this.draw();
      this.onChange();
    } else {
      this.shown = false; // the handles come back
      this.onChange();
    }
  }

  /** Show handles for the area. Those of a circle come with `around`. */
  #edit() {
    const { type, corridor } = this.area;
    if (type) this.editor.edit(this.area);
    else if (corridor) this.editor.edit({ type: "LineString", coordinates: corridor.line });
    this.#overlay();
  }

  /** Take over what the editor of corners made. */
  #follow() {
    const geometry = this.editor.geometry();
    if (geometry?.type === "LineString") {
      this.area = normalised({ corridor: { line: geometry.coordinates, width_m: this.#width() } });
    } else if (geometry) this.area = normalised(geometry);
    if (geometry) {
      this.#fields();
      this.onChange();
    }
    this.#overlay();
    this.#refresh();
  }

  #take(area) {
    this.area = normalised(area);
    this.#fields();
    this.onChange();
    this.#refresh();
  }

  #resize(width) {
    this.area = { corridor: { ...this.area.corridor, width_m: width } };
    this.#fields();
    this.#overlay();
    this.#refresh();
    this.onChange();
  }

  /** Draw the band of a corridor below its line, and the handle of its width. */
  #overlay() {
    this.corridor?.remove();
    this.corridor = null;
    const line = this.chosen === "corridor" && (this.drawing ? this.editor.sketch() : this.area?.corridor?.line);
    if (!line || line.length < 2 || (!this.drawing && !this.shown)) return this.width.remove();
    const width = this.#width();
    const turn = turnTowards(line[0][0], this.map.getCenter().lng);
    const corridor = moved({ corridor: { line, width_m: width } }, ([lon, lat]) => [lon + turn, lat]);
    const style = {
      color: this.colour(),
      weight: 1.5,
      fillOpacity: 0.12,
      interactive: false,
      className: "edited-corridor",
    };
    this.corridor = new DrawnArea(this.L, corridor, style).addTo(this.map);
    if (this.drawing) this.width.remove();
    else this.width.show(corridor.corridor, this.colour());
  }

  /** Show the numbers of the area in the fields, except in the one that has the focus. */
  #fields() {
    const { elements } = this.form;
    const put = (name, value) => document.activeElement !== elements[name] && (elements[name].value = value);
    const { circle, corridor } = this.area ?? {};
    put("areaLon", circle ? rounded(circle.center[0], 5) : "");
    put("areaLat", circle ? rounded(circle.center[1], 5) : "");
    const measure = (name, metres) => document.activeElement !== elements[name] && this.measures[name].show(metres);
    measure("areaRadius", circle?.radius_m ?? units().radiusM);
    measure("areaWidth", corridor?.width_m ?? units().radiusM / 10);
    const text = this.area && !circle ? cornersText(this.area) : "";
    put("corners", text ?? "");
    elements.corners.disabled = text === null;
    elements.corners.placeholder =
      text === null ? gettext("Several polygons, or holes: change them on the map or in the plan.") : "24.9, 60.1";
  }

  #metres(name) {
    const { own } = this.measures[name];
    return own > 0 ? own : null;
  }

  /** The width of the corridor, or of one that is being drawn. */
  #width() {
    return this.area?.corridor?.width_m ?? this.#metres("areaWidth") ?? units().radiusM / 10;
  }

  #fromFields() {
    const { elements } = this.form;
    if (this.chosen === "circle") {
      const center = [elements.areaLon.valueAsNumber, elements.areaLat.valueAsNumber];
      const radius = this.#metres("areaRadius");
      if (center.every(Number.isFinite) && Math.abs(center[1]) <= 90 && radius)
        this.#take({ circle: { center, radius_m: radius } });
      else if (radius && this.area?.circle) this.#take({ circle: { ...this.area.circle, radius_m: radius } });
    } else if (this.area?.corridor && this.#metres("areaWidth")) this.#resize(this.#metres("areaWidth"));
    else this.#overlay();
  }

  /** Take over the corners that were typed. */
  #fromCorners() {
    const places = cornersFrom(this.form.elements.corners.value);
    const fewest = this.chosen === "polygon" ? 3 : 2;
    if (!places || places.length < fewest || places.some(([, lat]) => Math.abs(lat) > 90)) {
      return this.onError(
        filled(gettext("Type %(count)s corners or more, each on a line: longitude, latitude."), { count: fewest }),
      );
    }
    const width = this.#width();
    this.#clear();
    this.area = normalised(
      this.chosen === "polygon"
        ? { type: "Polygon", coordinates: [[...places, places[0]]] }
        : { corridor: { line: places, width_m: width } },
    );
    this.shown = false; // the handles are made anew
    this.onChange();
  }

  #inWorld([lon, lat]) {
    return [lon, Math.max(-90, Math.min(90, lat))];
  }

  /** Show the size, and while the user draws also what the keys do. */
  #refresh() {
    const { drawing } = this;
    const text = this.#sizeText();
    setText($("area-size"), drawing ? "" : text);
    setText($("area-hint"), (this.read() && !drawing ? EDIT_HINTS : HINTS)[this.chosen] ?? "");
    $("shape-bar").hidden = !drawing;
    if (drawing) {
      const corners = this.editor.points?.length ?? 0;
      setText($("shape-bar-text"), (corners > 0 && text) || HINTS[this.chosen]);
      $("shape-undo").hidden = this.chosen === "circle" || corners === 0;
      $("shape-finish").hidden = this.chosen === "circle" || corners < (this.chosen === "polygon" ? 3 : 2);
    }
    this.recount?.();
  }

  #sizeText() {
    const sketch = this.drawing ? this.editor.sketch?.() : null;
    if (sketch?.length && this.chosen === "corridor") {
      return filled(gettext("%(length)s long, %(width)s wide"), {
        length: length(lineLength(sketch)),
        width: length(this.#width()),
      });
    }
    if (sketch?.length) {
      const ring = [...sketch, sketch[0]];
      if (sketch.length < 3) return length(lineLength(sketch));
      const { squareM } = sizeOf({ type: "Polygon", coordinates: [ring] });
      return filled(gettext("%(size)s, %(length)s around"), {
        size: square(squareM),
        length: length(lineLength(ring)),
      });
    }
    const area = this.read();
    if (!area) return "";
    const { squareM, lengthM } = sizeOf(area);
    const texts = { size: square(squareM), length: length(lengthM) };
    if (area.circle)
      return filled(gettext("Radius %(radius)s, %(size)s"), { ...texts, radius: length(area.circle.radius_m) });
    if (area.corridor)
      return filled(gettext("%(length)s long, %(width)s wide, %(size)s"), {
        ...texts,
        width: length(area.corridor.width_m),
      });
    return filled(gettext("%(count)s corners, %(size)s, %(length)s around"), {
      ...texts,
      count: count(cornersOf(area)),
    });
  }

  /** Whether all of an area is on the screen; the page knows only the objects there. */
  #inView(area) {
    const box = formOf(area) ? boxAround(area) : area;
    const { west, south, east, north } = rectangleOf(box, this.map.getCenter().lng);
    return this.map.getBounds().contains([
      [south, west],
      [north, east],
    ]);
  }

  /** Say how many objects the area has, and how an edit changes that. */
  #count() {
    const area = this.counting ? (this.read() ?? (this.shaped ? null : this.other)) : null;
    const line = $("area-count");
    if (!area || this.drawing) return setText(line, "");
    const { inside, came, left } = changeOf(this.store.objects, this.stream, this.before, area);
    const there = ngettext("%(count)s object of the map there now", "%(count)s objects of the map there now", inside);
    const counted = filled(there, { count: count(inside) });
    const whole = this.filtered ? filled(gettext("%(what)s, before the filter"), { what: counted }) : counted;
    const now = this.#inView(area)
      ? whole
      : filled(gettext("%(what)s, in the part in view: zoom out to count all"), { what: whole });
    setText(line, this.before ? `+${count(came)} \u2212${count(left)}: ${now}` : now);
    line.title = shapeText(area);
  }
}

function rounded(value, decimals) {
  return Math.round(value * 10 ** decimals) / 10 ** decimals;
}
