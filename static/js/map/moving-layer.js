// Draws queries with a focus: their range, which glides along with the focus, lines to neighbours, and handles.

import { AroundHandles } from "./around-handles.js";
import { circle, handlesOf, shapeOf } from "../around.js";
import { lessMotion } from "../dom.js";
import { turnTowards } from "../geometry.js";
import { kindOf } from "../kinds/registry.js";
import { uncrowded } from "./labels.js";
import { DASHES } from "../looks.js";
import { forget, stepped } from "./undo.js";
import { unitsName } from "../units.js";

const GLIDE_MS = 300;
const SMALLEST_PX = 16; // from focus to handle: handles that are nearer would hide what is there
const LABELS = 20; // ranks that are written onto the nearest neighbours
const RANK_PX = [24, 20]; // width and height of a rank
const RANK_AT = [8, -20]; // from the object to its rank's corner, as the style sheet has it
const PREVIEW = "preview";
// Leaflet puts corners onto whole pixels, which makes a round shape bumpy, and tremble while it moves.
export const UNROUNDED = {
  _projectLatlngs(latLngs, result, bounds) {
    if (Array.isArray(latLngs[0])) return latLngs.forEach((ring) => this._projectLatlngs(ring, result, bounds));
    const origin = this._map.getPixelOrigin();
    const ring = latLngs.map((corner) => this._map.project(corner)._subtract(origin));
    for (const point of ring) bounds.extend(point);
    return result.push(ring);
  },
};

export class MovingLayer {
  L;
  map;
  store;
  palette;
  now;
  onChange;
  names;
  lit;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `store`; `palette()`; `now()`; `onChange(query, plan)`, returning a promise of the saved edit;
   *   `names`, QueryNames; `lit(number)`, whether a query's shape is filled
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map, ...parts });
    this.Ring = L.Polygon.extend(UNROUNDED);
    this.looks = new Map();
    this.dragging = false;
    map.on("moveend zoomend", () => this.refresh());
    this.store.on("places objects", () => this.#later());
  }

  /** Show the ranges of the listed queries, except for the query that is being edited. */
  showQueries(queries, edited) {
    const wanted = new Map(
      queries.filter((q) => q.shown && q.plan?.around && q.query !== edited).map((q) => [q.query, q]),
    );
    for (const number of this.looks.keys()) if (number !== PREVIEW && !wanted.has(number)) this.#drop(number);
    for (const [number, query] of wanted) this.#look(number).listed = query;
    this.refresh();
  }

  /** Show a plan that is being written, with handles; null shows none. `onDraft(plan)` is called with what the handles make of it. */
  preview(query, plan, onDraft) {
    if (!plan?.around) return this.#drop(PREVIEW);
    Object.assign(this.#look(PREVIEW), { listed: { query, plan, status: "running" }, onDraft });
    this.refresh();
  }

  /** Return the bounds of a query's range and neighbours, to fly there; null if it is not on the map. */
  boundsOf(number) {
    const look = this.looks.get(number);
    const points = look?.at ? [...(look.ring ?? []), ...look.ends.map(({ at }) => at), look.at] : [];
    return points.length > 0 ? this.L.latLngBounds(points.map(latLng)) : null;
  }

  refresh() {
    for (const look of this.looks.values()) this.#draw(look);
    this.#label();
    this.names.place();
  }

  /** Return the shapes of the saved queries as rings, by number. */
  rings() {
    return [...this.looks]
      .filter(([number, { ring }]) => number !== PREVIEW && ring)
      .map(([number, { ring }]) => [number, ring]);
  }

  /** Return the boxes, in layer points, in which ranks are written. */
  rankBoxes() {
    const [width, height] = RANK_PX;
    return [...this.looks.values()]
      .flatMap(({ labels }) => labels)
      .map((label) => {
        const { x, y } = this.map.latLngToLayerPoint(label.getLatLng());
        return [x + RANK_AT[0], y + RANK_AT[1], x + RANK_AT[0] + width, y + RANK_AT[1] + height];
      });
  }

  #later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.refresh();
    });
  }

  #look(number) {
    if (this.looks.has(number)) return this.looks.get(number);
    const { store } = this;
    const look = {
      number,
      at: null,
      drawn: null,
      draft: null,
      ends: [],
      parts: {},
      labels: [],
      listed: null,
      /** The query as it is now: what is listed may be older, and a saved edit would not be drawn at first. */
      get query() {
        return store.queries.get(number) ?? this.listed;
      },
    };
    look.handles = new AroundHandles(this.L, this.map, {
      plan: () => planOf(look),
      at: () => look.at,
      changed: () => look.draft !== null,
      draft: (plan) => {
        look.draft = plan;
        this.#draw(look);
      },
      save: () => this.#save(look),
      onDrag: (on) => (this.dragging = on),
    });
    this.looks.set(number, look);
    return look;
  }

  #drop(number) {
    const look = this.looks.get(number);
    this.looks.delete(number);
    if (!look) return;
    forget(look);
    this.#clear(look);
  }

  /** Remove a query from the map, until its place is known. */
  #clear(look) {
    this.names.drop(look.number);
    look.ring = null;
    for (const layer of [...Object.values(look.parts), ...look.labels, look.handles]) layer.remove();
    Object.assign(look, { at: null, drawn: null, draft: null, ends: [], parts: {}, labels: [] });
  }

  #draw(look) {
    if (!this.looks.has(look.number)) return;
    const plan = planOf(look);
    if (!plan?.around) return this.#clear(look); // an edit made it another kind, and the list does not say so yet
    const target = plan.around.at ?? this.#placeOf(look.query);
    if (!target) return this.#clear(look);
    look.at = this.#glided(look, this.#near(target));
    look.ends = this.#neighbours(look);
    const style = this.#style(look);
    const searched = this.#searched(look);
    this.#lines(look, style);
    const wanted = JSON.stringify([
      look.at,
      plan,
      look.query.name,
      style,
      searched,
      this.map.getZoom(),
      this.#mine(look),
      Boolean(look.draft),
      unitsName(),
    ]);
    if (look.drawn === wanted) return; // most queries rest while objects move
    look.drawn = wanted;
    const shape = shapeOf(plan, look.at);
    look.ring = shape?.ring;
    this.#name(look, style);
    this.#path(look, "range", look.ring, { ...style, fill: shape?.filled ?? false });
    this.#path(look, "searched", searched && circle(look.at, searched).ring, {
      ...style,
      fill: false,
      opacity: 0.5 * style.opacity,
      dashArray: "2 6",
    });
    this.#focus(look, style);
    const visible = (name, place) => name === "place" || look.draft !== null || this.#apart(look.at, place);
    look.handles.show(this.#mine(look) ? handlesOf(plan, look.at) : {}, {
      title: look.query.name,
      colour: style.color,
      visible,
    });
  }

  #placeOf({ query, plan }) {
    const place = this.store.places.get(query);
    const { around, stream } = plan;
    if (place && place.key === around.key && Number.isFinite(place.lon)) return [place.lon, place.lat];
    const slot = this.store.objects.slot(around.stream ?? stream, around.key);
    return slot === undefined ? null : [this.store.objects.lon[slot], this.store.objects.lat[slot]];
  }

  #near([lon, lat]) {
    return [lon + turnTowards(lon, this.map.getCenter().lng), lat];
  }

  /** Return where to draw a query that glides to a place. */
  #glided(look, target) {
    const jumps = !look.at || look.draft || lessMotion() || Math.abs(target[0] - look.at[0]) > 180;
    if (jumps) {
      look.glide = null;
      return target;
    }
    if (look.glide?.to[0] !== target[0] || look.glide.to[1] !== target[1])
      look.glide = { from: look.at, to: target, sinceMs: performance.now() };
    const share = Math.min(1, (performance.now() - look.glide.sinceMs) / GLIDE_MS);
    if (share < 1) this.#later();
    const eased = 1 - (1 - share) ** 2;
    return [0, 1].map((axis) => look.glide.from[axis] + eased * (target[axis] - look.glide.from[axis]));
  }

  #neighbours({ query, at }) {
    if (!kindOf(query.plan).ranked) return [];
    const { lon, lat } = this.store.objects;
    const place = (slot) => [lon[slot] + turnTowards(lon[slot], at[0]), lat[slot]];
    return (this.store.answers.get(query.query)?.neighbours() ?? [])
      .filter(({ slot }) => Number.isFinite(lon[slot]))
      .map((neighbour) => ({ ...neighbour, at: place(neighbour.slot) }));
  }

  /** Return the radius of the search region of nearest neighbours; null before it is known. */
  #searched({ query }) {
    const { reach, lost } = this.store.places.get(query.query) ?? {};
    return kindOf(query.plan).ranked && reach > 0 && !lost ? reach : null;
  }

  #style({ query, number }) {
    const place = this.store.places.get(query.query);
    const live = query.status === "running" && !place?.lost;
    return {
      color: number === PREVIEW ? this.palette().accent : this.palette().queries[query.colour],
      weight: this.lit(number) ? 3 : 2,
      opacity: live ? 0.95 : 0.45,
      fillOpacity: number !== PREVIEW && !this.lit(number) ? 0 : live ? 0.1 : 0.05,
      dashArray: !live ? "2 5" : this.store.focusSilent(query.query, this.now()) ? "8 6" : (DASHES[query.line] ?? null),
      interactive: false,
    };
  }

  /** Show a ring, or remove it if there is none. */
  #path({ parts }, name, ring, style) {
    if (!ring) {
      parts[name]?.remove();
      delete parts[name];
      return;
    }
    parts[name] ??= new this.Ring([], { ...style, smoothFactor: 0, className: `around-${name}` }).addTo(this.map);
    parts[name].setStyle(style).setLatLngs(ring.map(latLng));
  }

  /** Put the name of a saved query onto its range. */
  #name({ number, ring, query }, { color: colour }) {
    if (number === PREVIEW) return;
    if (!ring) return this.names.drop(number);
    const round = !query.plan.around.half_widths && !query.plan.around.polygon;
    this.names.set(number, query.name, { bounds: this.L.latLngBounds(ring.map(latLng)), colour, round });
  }

  #lines({ parts, ends, at, query }, style) {
    if (!kindOf(query.plan).ranked) return;
    parts.lines ??= this.L.polyline([], { ...style, className: "around-lines" }).addTo(this.map);
    parts.lines
      .setStyle({ ...style, weight: 1.6, opacity: 0.8 * style.opacity, fill: false })
      .setLatLngs(ends.map((end) => [latLng(at), latLng(end.at)]));
  }

  #focus({ parts, at, query }, style) {
    if (query.plan.around.at) return;
    parts.focus ??= this.L.circleMarker(latLng(at), { radius: 12, className: "around-focus" }).addTo(this.map);
    parts.focus.setStyle({ ...style, weight: 2.5, fill: false }).setLatLng(latLng(at));
  }

  /** Write ranks beside the nearest neighbours, except where a rank would cover a lower one, of whichever query. */
  #label() {
    const all = [...this.looks.values()].flatMap((look) => look.ends.slice(0, LABELS).map((end) => ({ look, ...end })));
    const inOrder = all.sort((a, b) => a.rank - b.rank);
    const shown = uncrowded(inOrder, ({ at }) => this.map.latLngToLayerPoint(latLng(at)), RANK_PX);
    for (const look of this.looks.values())
      this.#ranks(
        look,
        shown.filter((end) => end.look === look),
      );
  }

  #ranks(look, shown) {
    while (look.labels.length > shown.length) look.labels.pop().remove();
    shown.forEach(({ rank, at }, i) => {
      look.labels[i] ??= this.L.marker(latLng(at), {
        icon: this.L.divIcon({ className: "rank", iconSize: [0, 0] }),
        keyboard: false,
        interactive: false,
      }).addTo(this.map);
      const element = look.labels[i].setLatLng(latLng(at)).getElement();
      element.style.setProperty("--colour", this.#style(look).color);
      if (element.textContent !== String(rank))
        element.replaceChildren(Object.assign(document.createElement("span"), { textContent: rank }));
    });
  }

  /** Return whether the user may change the query by handles. */
  #mine({ number, query }) {
    return number === PREVIEW || (query.mine !== false && ["running", "pending"].includes(query.status));
  }

  #apart(a, b) {
    return this.map.latLngToLayerPoint(latLng(a)).distanceTo(this.map.latLngToLayerPoint(latLng(b))) >= SMALLEST_PX;
  }

  /** Save the drawn plan. The map shows it until the server has answered. */
  async #save(look) {
    const plan = look.draft;
    const { onDraft, query } = look;
    if (plan && onDraft) {
      stepped(look, () => onDraft(query.plan));
      onDraft(plan);
    } else if (plan && JSON.stringify(plan) !== JSON.stringify(query.plan)) await this.onChange(query, plan);
    if (look.draft === plan) look.draft = null;
    this.#draw(look);
  }
}

/** Return a query's plan as it is drawn. */
function planOf({ draft, query }) {
  return draft ?? query.plan;
}

function latLng(/** @type {any[]} */ [lon, lat]) {
  return [lat, lon];
}
