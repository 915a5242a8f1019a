// The kinds of queries: the only list of them. Everybody else asks it, and names no kind. Pure, but for the fields of the form.

import { approach } from "./approach/kind.js";
import { closestApproach } from "./closest_approach/kind.js";
import { encounter } from "./encounter/kind.js";
import { intervalJoin } from "./interval_join/kind.js";
import { join } from "./join/kind.js";
import { nearest } from "./knn/kind.js";
import { movingRange } from "./moving_range/kind.js";
import { range, rangeOutside } from "./range/kind.js";
import { rule } from "./rule/kind.js";
import { sketch } from "./sketch/kind.js";
import { track } from "./track/kind.js";
import { windowJoin } from "./window_join/kind.js";

/**
 * A part of the query form. It is made once, with `store`, `form` (the query form's element) and `part(class)`, which returns another part.
 *
 * @typedef {object} FormPart
 * @property {(plan: any) => void} start shows a plan, or what is usual
 * @property {(visible: boolean) => void} show shows the fields that belong to what is chosen, or hides them all
 * @property {() => Record<string, any>} read returns what the plan is made of, as `Kind.plan` takes it
 * @property {() => Record<string, string>} errors returns what is wrong, by field
 * @property {() => void} [offer] offers the streams and layers that there are now
 * @property {(plan: any) => void} [setRange] takes over the range of a plan that was changed on the map
 * @property {Record<string, string>} [first] which element gets the focus after an error, where it does not have the name of the error's field
 */

/**
 * What the form shows of a kind: `parts`, classes of `FormPart`; `focus`, whether it has a focus in place of an area; `pairs`, whether it is about
 * pairs, and the area may be the whole map; `rectangles`, whether its area can be a rectangle only.
 *
 * @typedef {{parts: (new (parts: any) => FormPart)[], focus?: boolean, pairs?: boolean, rectangles?: boolean}} KindForm
 */

/**
 * What a join over event time says of times: `numbers`, names of elements of the form; `optional`, those that may be empty; `standard`, what the form
 * begins with; `of(plan)`; `plan(before, times)`; `errors(times)`; `words(what, times, plan, titleOf)`; `parts`, classes with further fields.
 *
 * @typedef {object} KindTimes
 * @property {string[]} numbers
 * @property {string[]} [optional]
 * @property {Record<string, any>} standard
 * @property {(plan: any) => Record<string, any>} of
 * @property {(before: any, times: any) => Record<string, any>} plan
 * @property {(times: any) => Record<string, string>} errors
 * @property {(what: string, times: any, plan: any, titleOf: any) => string} words
 * @property {(new (parts: any) => any)[]} [parts]
 */

/**
 * What the map draws of the answers of a kind: `find(store, visible)` returns it, a list; `draw(context, found, how)` draws it, with `view`, as for
 * `drawPairs`, `width` and `height` of the canvas, `objects`, those that are `visible`, `colours` of queries, and `edge` and `surface`, for casings.
 *
 * @typedef {{find: (store: any, visible: any) => any[], draw: (context: any, found: any[], how: any) => void}} KindDrawing
 */

/**
 * A kind of query, as its folder registers it. Several kinds may report one thing: then the form chooses by what else it says.
 *
 * @typedef {object} Kind
 * @property {string} report what it reports, as the form has it
 * @property {(plan: any) => boolean} claims whether a plan is of this kind, if it is of none before it
 * @property {(plan: any, titleOf: (source: string, name: any) => string, focus?: string) => string} words says what a plan looks for
 * @property {(fields: any) => boolean} [makes] whether it is what the form says, among the kinds of one report
 * @property {(kept: any, fields: any, before: any) => Record<string, any>} [plan] returns the plan of what the form says, of what is kept of the plan
 *   before, and of that itself
 * @property {(plan: any) => Record<string, any>} [leave] returns a plan without what only this kind has, for a plan of another kind
 * @property {KindForm} [form] its fields, for the first kind of a report
 * @property {string} [when] of a join: which reports it pairs
 * @property {KindTimes} [times] of a join over event time
 * @property {Record<string, string>} [fieldOf] the fields of the form that errors about some keys are about
 * @property {boolean} [paired] whether its answer has pairs
 * @property {boolean} [told] whether it tells each pair once and keeps no answer
 * @property {boolean} [lasting] whether its answer has encounters
 * @property {boolean} [ranked] whether its members have ranks
 * @property {boolean} [asked] whether it asks a sketch, so that its answer has documents in place of objects
 * @property {boolean} [close] whether its pairs have places where they will be closest
 * @property {boolean} [ruled] whether it is a rule over the answers of other queries
 * @property {KindDrawing} [drawing] what the map draws of its answers beside their objects
 * @property {(plan: any, figures: any, nameOf: (query: number) => string) => string} [alarm] says what the numbers of an alarm about whole answers were
 */

/** A kind claims the plans that those before it do not; the last one claims the rest. @type {Kind[]} */
export const KINDS = [
  join,
  windowJoin,
  intervalJoin,
  encounter,
  rule,
  sketch,
  nearest,
  movingRange,
  approach,
  closestApproach,
  track,
  rangeOutside,
  range,
];

/** Return the kind of a plan. @returns {Kind} */
export function kindOf(plan) {
  return KINDS.find(({ claims }) => claims(plan ?? {})) ?? range;
}

/** Return what the form shows of what a query reports. @returns {KindForm} */
export function formOfReport(report) {
  return KINDS.find((kind) => kind.report === report && kind.form)?.form ?? range.form;
}

/** Return all classes of parts of the form, each once. */
export function formParts() {
  return [...new Set(KINDS.flatMap(({ form }) => form?.parts ?? []))];
}

/**
 * Return the plan to save. It keeps what the form does not show of an edited plan, except for an area that only repeats
 * the old box, or that would cut the answer when the plan turns from inside to outside. Without a new box the old one stays.
 *
 * @param {Record<string, any>} before
 * @param {Record<string, any>} fields `stream`, `report`, `where`, `box` or null, `shape`, an area that is no box, or null; and what the parts of
 *   the form read
 */
export function planOf(before, fields) {
  const kind = KINDS.find(({ report, makes }) => report === fields.report && makes?.(fields)) ?? range;
  const { leave } = kindOf(before);
  return /** @type {any} */ (kind).plan(leave ? leave(before) : (before ?? {}), fields, before ?? {});
}

/** What the map draws of the answers of all kinds. */
export const DRAWINGS = KINDS.flatMap(({ drawing }) => drawing ?? []);

/** The fields of the form that errors about some keys of plans are about. @type {Record<string, string>} */
export const FIELD_OF_KEY = Object.assign({}, ...KINDS.map(({ fieldOf }) => fieldOf));
