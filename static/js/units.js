// The units in which figures are shown and typed. Values stay in SI units, in plans and messages; only texts and fields change.

import { gettext } from "./i18n.js";
import { pageEvents } from "./page-events.js";

const FEET = ["ft", 0.3048];
const METRES = ["m", 1];
const MILE_M = 1609.344;
const NAUTICAL_MILE_M = 1852;

/**
 * The systems of units, by name. A unit is `[symbol, size in SI units, decimals]`. Lengths below `shortM` metres are in
 * `short`, others in `long`; `radiusM` is a round distance for queries around something; `celsius` says whether
 * temperatures are in degrees Celsius.
 */
export const SYSTEMS = {
  metric: {
    title: gettext("Metric"),
    hint: "m, km, m/s",
    short: METRES,
    long: ["km", 1000],
    shortM: 1000,
    radiusM: 10_000,
    speed: ["m/s", 1, 1],
    altitude: ["m", 1, 0],
    climb: ["m/s", 1, 1],
    mass: ["kg", 1, 0],
    celsius: true,
  },
  nautical: {
    title: gettext("Nautical"),
    hint: "nm, kn, ft, ft/min",
    short: METRES,
    long: ["nm", NAUTICAL_MILE_M],
    shortM: 0.1 * NAUTICAL_MILE_M,
    radiusM: 5 * NAUTICAL_MILE_M,
    speed: ["kn", NAUTICAL_MILE_M / 3600, 1],
    altitude: [...FEET, 0],
    climb: ["ft/min", 0.3048 / 60, 0],
    mass: ["kg", 1, 0],
    celsius: true,
  },
  imperial: {
    title: gettext("Imperial"),
    hint: "ft, mi, mph, ft/min",
    short: FEET,
    long: ["mi", MILE_M],
    shortM: 0.1 * MILE_M,
    radiusM: 5 * MILE_M,
    speed: ["mph", MILE_M / 3600, 1],
    altitude: [...FEET, 0],
    climb: ["ft/min", 0.3048 / 60, 0],
    mass: ["lb", 0.45359237, 0],
    celsius: false,
  },
};

/** Units of length that forms offer, in metres. */
export const LENGTHS_M = { m: 1, km: 1000, nm: NAUTICAL_MILE_M, ft: 0.3048, mi: MILE_M };

let chosen = "metric";

/** The name of the chosen system. */
export function unitsName() {
  return chosen;
}

/** The chosen system. */
export function units() {
  return SYSTEMS[chosen];
}

/** Choose a system by its name; an unknown one changes nothing. */
export function chooseUnits(name) {
  if (!Object.hasOwn(SYSTEMS, name)) return;
  chosen = name;
  pageEvents.emit("units");
}
