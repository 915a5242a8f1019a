// Which labels there is room for. Pure.

/**
 * Those of `things` whose labels do not overlap, the first ones first.
 *
 * @param {function} pointOf the place `{x, y}` of a thing on the screen
 * @param {Array} size width and height of a label
 */
export function uncrowded(things, pointOf, [width, height]) {
  const kept = [];
  for (const thing of things) {
    const { x, y } = pointOf(thing);
    if (kept.every(({ point }) => Math.abs(point.x - x) >= width || Math.abs(point.y - y) >= height)) kept.push({ thing, point: { x, y } });
  }
  return kept.map(({ thing }) => thing);
}
