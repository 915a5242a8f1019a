// Lines of equal value through a grid, by marching squares (W. Lorensen and H. Cline, "Marching Cubes", 1987, in two dimensions). Pure.

import { extentOf, roundSteps } from "./scales.js";

const MOST_LEVELS = 9;

/** Return round values between the extremes of a grid at which lines are drawn. */
export function levelsOf(values) {
  const extent = extentOf(Array.from(values));
  return extent ? roundSteps(...extent, MOST_LEVELS).filter((level) => level > extent[0] && level < extent[1]) : [];
}

/**
 * Return the lines on which a grid has a value: lists of `[column, row]`, fractions of them in between. A closed line ends
 * where it begins. There is no line beside a missing value.
 *
 * @param {Record<string, any>} grid `columns`, `rows`, and `values`, row by row, NaN where one is missing
 */
export function linesAt({ columns, rows, values }, level) {
  const places = new Map(); // number of an edge -> where the line crosses it
  const links = new Map(); // number of an edge -> the edges to which the line goes on
  const cross = (a, b, horizontal) => {
    const edge = 2 * a + (horizontal ? 0 : 1);
    const part = (level - values[a]) / (values[b] - values[a]);
    const [column, row] = [a % columns, Math.floor(a / columns)];
    places.set(edge, horizontal ? [column + part, row] : [column, row + part]);
    return edge;
  };
  const link = (one, other) => {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ])
      links.set(from, [...(links.get(from) ?? []), to]);
  };
  for (let row = 0; row + 1 < rows; row++) {
    for (let column = 0; column + 1 < columns; column++) {
      const a = row * columns + column;
      const corners = [a, a + 1, a + columns + 1, a + columns];
      if (corners.some((corner) => Number.isNaN(values[corner]))) continue;
      const above = corners.map((corner) => values[corner] >= level);
      const edges = [
        [a, a + 1, true],
        [a + 1, a + columns + 1, false],
        [a + columns, a + columns + 1, true],
        [a, a + columns, false],
      ];
      const crossed = edges.flatMap((edge, i) => (above[i] === above[(i + 1) % 4] ? [] : [cross(...edge)]));
      if (crossed.length === 2) link(...crossed);
      if (crossed.length < 4) continue;
      // A saddle: the mean of the corners says which of them belong together.
      const high = corners.reduce((sum, corner) => sum + values[corner], 0) / 4 >= level;
      const [south, east, north, west] = crossed;
      const apart =
        high === above[0]
          ? [
              [south, east],
              [north, west],
            ]
          : [
              [south, west],
              [north, east],
            ];
      for (const pair of apart) link(...pair);
    }
  }
  return joined(links).map((line) => line.map((edge) => places.get(edge)));
}

/** Join links into lines: first those with ends, then the closed ones. */
function joined(links) {
  const lines = [];
  const seen = new Set();
  const follow = (start) => {
    const line = [start];
    seen.add(start);
    for (let at = start; ;) {
      const next = links.get(at).find((edge) => !seen.has(edge));
      if (next === undefined) {
        if (line.length > 2 && links.get(at).includes(start)) line.push(start);
        return lines.push(line);
      }
      seen.add(next);
      line.push(next);
      at = next;
    }
  };
  for (const [edge, others] of links) if (others.length === 1 && !seen.has(edge)) follow(edge);
  for (const edge of links.keys()) if (!seen.has(edge)) follow(edge);
  return lines;
}
