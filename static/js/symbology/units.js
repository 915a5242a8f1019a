// In which units the legend writes a property's numbers. Pure except for the chosen units.

import { LENGTHS_M, units } from "../units.js";

const MPS = { _mps: 1, _kmh: 1 / 3.6, _kn: LENGTHS_M.nm / 3600 };
const LENGTHS = { _m: 1, _ft: LENGTHS_M.ft, _km: LENGTHS_M.km, _nm: LENGTHS_M.nm };
const SYMBOLS = { _deg_per_min: "\u00b0/min", _deg: "\u00b0", _pct: "%", _kg: "kg", _s: "s", _fpm: "ft/min" };
const VERTICAL = /vertical|climb|descent/;
const FAHRENHEIT = [5 / 9, -160 / 9]; // size and zero in degrees Celsius

/**
 * Return how the numbers of a property are written: `{symbol, unit: [size, zero]}`; the written number is `(number - zero) / size`.
 *
 * @param {string} name of the property, whose ending says its unit
 * @param {number} typical of its numbers, by which lengths are in metres or in kilometres
 */
export function writtenIn(name, typical = 0) {
  const ending = (table) => Object.keys(table).find((suffix) => name.endsWith(suffix));
  const speed = ending(MPS);
  if (speed) {
    const [symbol, size] = VERTICAL.test(name) ? units().climb : units().speed;
    return { symbol, unit: [size / MPS[speed], 0] };
  }
  const symbol = ending(SYMBOLS);
  if (symbol) return { symbol: SYMBOLS[symbol], unit: [1, 0] };
  if (name.endsWith("_c"))
    return units().celsius ? { symbol: "\u00b0C", unit: [1, 0] } : { symbol: "\u00b0F", unit: FAHRENHEIT };
  const length = ending(LENGTHS);
  if (!length) return { symbol: "", unit: [1, 0] };
  const { altitude, short, long, shortM } = units();
  const [written, size] = /altitude|elevation/.test(name)
    ? altitude
    : typical * LENGTHS[length] >= shortM
      ? long
      : short;
  return { symbol: written, unit: [size / LENGTHS[length], 0] };
}
