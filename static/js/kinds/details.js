// What only some kinds of queries tell of a pair, beside who it is: the only list of it. Pure.

import { closest } from "./closest_approach/detail.js";
import { partnerReport } from "./join/detail.js";

/**
 * `ofBatch(batch)` returns a function of a row of a binary frame that returns what is told of it, or null if the frame has none; `ofJson(row)` returns
 * the same of a row of a JSON frame.
 *
 * @typedef {{ofBatch: (batch: any) => ((row: number) => Record<string, any>) | null, ofJson: (row: any) => Record<string, any>}} KindDetail
 */

/** @type {KindDetail[]} */
export const DETAILS = [partnerReport, closest];
