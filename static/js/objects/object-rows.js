// The rows of an object: what matters first, whatever its feed sends first. Pure.

import { properties } from "../format.js";

// The properties that come first, in this order; feeds name them in many ways, with and without a unit.
const FIRST = [
  /^(ship|vessel|aircraft|vehicle)_?type$|^(type|kind|category)$/,
  /^(route_id|route|line)$/,
  /^(speed(_over_ground)?|ground_?speed|sog|gs|velocity)(_(mps|kmh|kn|kt|kts|knots))?$/,
  /^(course(_over_ground)?|cog|track|bearing)(_deg)?$/,
  /^(true_)?heading(_deg)?$/,
  /^altitude(_baro)?(_(m|ft))?$/,
  /^vertical_rate(_(mps|fpm))?$/,
];
const NEXT = [/^(status|current_status|on_ground|emergency)$/, /^(destination|stop_id)$/];

/**
 * Return the rows `[label, text]` of an object: its type, speed and course, then `where`, then all else as it was sent. What the
 * head of its panel says, its name and its key, is left out.
 */
export function objectRows(known, head = [], where = []) {
  const told = new Set(head.map(String));
  const rest = Object.entries(known).filter(([, content]) => !told.has(String(content).trim()));
  const all = [...FIRST, ...NEXT];
  const rank = (name) => {
    const at = all.findIndex((pattern) => pattern.test(name.toLowerCase()));
    return at < 0 ? all.length : at;
  };
  const sorted = rest.map(([name, content]) => ({ rank: rank(name), name, content })).sort((a, b) => a.rank - b.rank);
  const rows = (from, to) =>
    properties(
      Object.fromEntries(
        sorted.filter((one) => one.rank >= from && one.rank < to).map(({ name, content }) => [name, content]),
      ),
    );
  return [...rows(0, FIRST.length), ...where, ...rows(FIRST.length, all.length + 1)];
}
