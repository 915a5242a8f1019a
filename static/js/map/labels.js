// Finds room for labels. Pure.

const CELL_PX = 6;
const LEAST_PX = 20; // few labels are narrower: with less room beside a symbol, its name is not looked up

/**
 * Return those of `things` whose labels do not overlap; where two would, the earlier one stays.
 *
 * @param {any[]} things
 * @param {(...values: any[]) => any} pointOf returns the place `{x, y}` of a thing on the screen
 * @param {number[]} size width and height of a label
 */
export function uncrowded(things, pointOf, [width, height]) {
  const kept = [];
  for (const thing of things) {
    const { x, y } = pointOf(thing);
    if (kept.every(({ point }) => Math.abs(point.x - x) >= width || Math.abs(point.y - y) >= height))
      kept.push({ thing, point: { x, y } });
  }
  return kept.map(({ thing }) => thing);
}

/** A grid of cells of a few pixels over the screen, which counts the things in each cell. */
export class Room {
  width;
  height;

  constructor(width, height) {
    Object.assign(this, { width, height });
    this.columns = Math.ceil(width / CELL_PX);
    this.rows = Math.ceil(height / CELL_PX);
    this.counts = new Uint32Array(this.columns * this.rows);
  }

  /** Count a thing in the cells that it touches; `by` = -1 takes it out again. */
  add(left, top, right, bottom, by = 1) {
    const [first, last] = [
      Math.max(0, Math.floor(left / CELL_PX)),
      Math.min(this.columns - 1, Math.floor(right / CELL_PX)),
    ];
    const end = Math.min(this.rows - 1, Math.floor(bottom / CELL_PX));
    for (let row = Math.max(0, Math.floor(top / CELL_PX)); row <= end; row++) {
      for (let column = first; column <= last; column++) this.counts[row * this.columns + column] += by;
    }
  }

  /** Return whether a box lies on the screen and all of its cells are empty. */
  free(left, top, right, bottom) {
    if (left < 0 || top < 0 || right >= this.width || bottom >= this.height) return false;
    const [first, last, end] = [left, right, bottom].map((px) => Math.floor(px / CELL_PX));
    for (let row = Math.floor(top / CELL_PX); row <= end; row++) {
      for (let column = first; column <= last; column++) if (this.counts[row * this.columns + column] > 0) return false;
    }
    return true;
  }
}

/**
 * Return the labels that have room beside their symbols, as `[[i, side], ...]`; side is 1 for the right and -1 for the left.
 *
 * The time is proportional to the number of symbols: for each, it looks at the cells of the boxes on its two sides.
 *
 * @param {Record<string, any>} places `{n, x, y}` of the symbols on the screen
 * @param {Record<string, any>} how `room`, to which the symbols and the labels are added; `radius` of a symbol; `height` of a label; `gap`
 *   between them; `order`, the numbers of the symbols, the most important first; `widthOf(i)`, called only where there may
 *   be room; `sideOf(i)`, the side to try first; `most`, the largest number of labels
 */
export function labelled({ n, x, y }, { room, radius, height, gap, order, widthOf, sideOf, most }) {
  const symbol = (i, by) => room.add(x[i] - radius, y[i] - radius, x[i] + radius, y[i] + radius, by);
  const box = (i, side, width) => {
    const near = x[i] + side * (radius + gap);
    return [
      Math.min(near, near + side * width),
      y[i] - height / 2,
      Math.max(near, near + side * width),
      y[i] + height / 2,
    ];
  };
  for (let i = 0; i < n; i++) symbol(i, 1);
  const found = [];
  for (const i of order) {
    if (found.length >= most) break;
    symbol(i, -1); // its own symbol is not in the way
    const sides = [sideOf(i), -sideOf(i)].filter((side) => room.free(...box(i, side, LEAST_PX)));
    const side = sides.length > 0 ? sides.find((one) => room.free(...box(i, one, widthOf(i)))) : undefined;
    symbol(i, 1);
    if (side === undefined) continue;
    room.add(...box(i, side, widthOf(i)));
    found.push([i, side]);
  }
  return found;
}

/** Return the numbers below `n`, those of the lowest rank first, in linear time; `rankOf` returns 0 to `ranks` - 1. */
export function byRank(n, ranks, rankOf) {
  /** @type {number[][]} */
  const lists = Array.from({ length: ranks }, () => []);
  for (let i = 0; i < n; i++) lists[rankOf(i)].push(i);
  return lists.flat();
}

/** Return whether two boxes `[left, top, right, bottom]` have a common area. */
export function overlap(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

/**
 * Return where a name fits onto a shape, `{x, y, width}`; null if there is no room. In a rectangle, the name begins at the
 * upper left corner of the part in view; on a circle, its middle is at the top, on the line.
 *
 * @param {Array} shape its box `[left, top, right, bottom]`
 * @param {Array} view the box of the screen
 */
export function fitted(shape, view, { smallest, most, height, inset, round }) {
  const [left, top, right, bottom] = shape;
  if (right - left < smallest || bottom - top < 2 * height || !overlap(shape, view)) return null;
  if (round) return { x: (left + right) / 2, y: top - height / 2, width: Math.min(most, right - left) };
  const [from, to] = [Math.max(left, view[0]) + inset, Math.min(right, view[2]) - inset];
  const y = Math.max(top, view[1]) + inset / 2;
  return to - from < smallest - 2 * inset || y + height > Math.min(bottom, view[3])
    ? null
    : { x: from, y, width: Math.min(most, to - from) };
}

/**
 * Return the number of the smallest shape that contains a point; undefined if none does.
 *
 * @param {Map} rings of places `[x, y]`, by number
 */
export function smallestAround(rings, point) {
  let [found, least] = [undefined, Infinity];
  for (const [number, ring] of rings) {
    const area = areaOf(ring);
    if (area < least && within(ring, point)) [found, least] = [number, area];
  }
  return found;
}

function areaOf(ring) {
  let twice = 0;
  ring.forEach(([x, y], i) => {
    const [fromX, fromY] = ring.at(i - 1);
    twice += fromX * y - x * fromY;
  });
  return Math.abs(twice) / 2;
}

/** Return whether a ring contains a point. */
export function within(ring, [x, y]) {
  let inside = false;
  ring.forEach(([toX, toY], i) => {
    const [fromX, fromY] = ring.at(i - 1);
    if (toY > y !== fromY > y && x < fromX + ((y - fromY) / (toY - fromY)) * (toX - fromX)) inside = !inside;
  });
  return inside;
}
