// Prepares the base map: rings and lines in Web Mercator, simplified by zoom, clipped by tile. Pure.

import { mercatorX, mercatorY } from "../geometry.js";

const EDGE_DEG = 179.999;

/** Project a ring or line of GeoJSON positions to `{points, box}`: flat points in unit Mercator, box [minX, minY, maxX, maxY]. */
export function projected(positions) {
  const points = new Float64Array(positions.length * 2);
  positions.forEach(([lon, lat], i) => {
    points[2 * i] = mercatorX(lon);
    points[2 * i + 1] = mercatorY(lat);
  });
  return { points, box: boxOf(points) };
}

function boxOf(points) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    box[0] = Math.min(box[0], points[i]);
    box[1] = Math.min(box[1], points[i + 1]);
    box[2] = Math.max(box[2], points[i]);
    box[3] = Math.max(box[3], points[i + 1]);
  }
  return box;
}

/** Return lines without the seam along the antimeridian and the south pole, where the data was cut. */
export function withoutSeam(lines) {
  const onSeam = ([lon, lat]) => Math.abs(lon) > EDGE_DEG || lat < -89.9;
  const out = [];
  for (const line of lines) {
    let part = [line[0]];
    for (let i = 1; i < line.length; i++) {
      const acrossTheWorld = Math.abs(line[i][0] - line[i - 1][0]) > 180;
      if (acrossTheWorld || (onSeam(line[i - 1]) && onSeam(line[i]))) {
        if (part.length > 1) out.push(part);
        part = [];
      }
      part.push(line[i]);
    }
    if (part.length > 1) out.push(part);
  }
  return out;
}

/** Decode lines of `static/land/world-*.json`, flat whole numbers (a place in steps, then differences), to what `projected` returns. */
export function summed({ steps, lines }) {
  return lines.map((numbers) => {
    const points = Float64Array.from(numbers);
    for (let i = 2; i < points.length; i++) points[i] += points[i - 2];
    for (let i = 0; i < points.length; i++) points[i] /= steps;
    return { points, box: boxOf(points) };
  });
}

/**
 * Decode the rings of a cell of `static/land/` to `{ring, coast}`: GeoJSON positions, and the parts of the ring that are
 * coast, not the cell's edge.
 *
 * @param {number[][]} rings flat whole numbers: a place in steps from the cell's corner, then differences
 * @param {Record<string, any>} index `cell`, `overlap` and `step` in degrees
 * @param {number[]} corner longitude and latitude of the cell's south-west corner
 */
export function cellRings(rings, { cell, overlap, step }, [west, south]) {
  const [low, high] = [Math.round(-overlap / step), Math.round((cell + overlap) / step)];
  const edge = (here, there) => here === there && (here === low || here === high);
  return rings.map((numbers) => {
    const ring = [];
    const parts = [[]];
    let [x, y] = [0, 0];
    for (let i = 0; i < numbers.length; i += 2) {
      const [lastX, lastY] = [x, y];
      x += numbers[i];
      y += numbers[i + 1];
      const position = [west + x * step, south + y * step];
      if (i > 0 && (edge(x, lastX) || edge(y, lastY))) parts.push([]);
      parts.at(-1).push(position);
      ring.push(position);
    }
    return { ring, coast: withoutSeam(parts.filter((part) => part.length > 1)) };
  });
}

/** Simplify shapes: leave out points that are nearer to the last kept point than a tolerance, and shapes smaller than it. */
export function simplified(shapes, tolerance) {
  return shapes.flatMap(({ points, box }) => {
    if (box[2] - box[0] < tolerance && box[3] - box[1] < tolerance) return [];
    const kept = [points[0], points[1]];
    const last = points.length - 2;
    for (let i = 2; i < last; i += 2) {
      const dx = points[i] - kept[kept.length - 2];
      const dy = points[i + 1] - kept[kept.length - 1];
      if (dx * dx + dy * dy >= tolerance * tolerance) kept.push(points[i], points[i + 1]);
    }
    kept.push(points[last], points[last + 1]);
    return [{ points: Float64Array.from(kept), box }];
  });
}

export function overlaps(a, b) {
  return a[0] <= b[2] && a[2] >= b[0] && a[1] <= b[3] && a[3] >= b[1];
}

function covers(outer, inner) {
  return outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3];
}

/**
 * Return the part of a ring that lies in a box.
 *
 * I. E. Sutherland, G. W. Hodgman, "Reentrant polygon clipping", Communications of the ACM 17(1), 1974.
 */
export function clippedRing({ points, box }, clip) {
  if (covers(clip, box)) return points;
  let ring = points;
  for (const [axis, bound, sign] of [
    [0, clip[0], 1],
    [0, clip[2], -1],
    [1, clip[1], 1],
    [1, clip[3], -1],
  ]) {
    ring = cutBy(ring, axis, bound, sign);
    if (ring.length === 0) break;
  }
  return ring;
}

function cutBy(ring, axis, bound, sign) {
  const out = [];
  const n = ring.length;
  for (let i = 0, j = n - 2; i < n; j = i, i += 2) {
    const here = sign * (ring[i + axis] - bound);
    const there = sign * (ring[j + axis] - bound);
    if (here >= 0 !== there >= 0) {
      const t = there / (there - here);
      out.push(ring[j] + t * (ring[i] - ring[j]), ring[j + 1] + t * (ring[i + 1] - ring[j + 1]));
    }
    if (here >= 0) out.push(ring[i], ring[i + 1]);
  }
  return out;
}

/** Return the parts of a line whose segments touch a box, as flat arrays. */
export function clippedLine({ points, box }, clip) {
  if (covers(clip, box)) return [points];
  const out = [];
  let run = [];
  for (let i = 2; i < points.length; i += 2) {
    const touches =
      Math.max(points[i - 2], points[i]) >= clip[0] &&
      Math.min(points[i - 2], points[i]) <= clip[2] &&
      Math.max(points[i - 1], points[i + 1]) >= clip[1] &&
      Math.min(points[i - 1], points[i + 1]) <= clip[3];
    if (touches) {
      if (run.length === 0) run.push(points[i - 2], points[i - 1]);
      run.push(points[i], points[i + 1]);
    } else if (run.length > 0) {
      out.push(run);
      run = [];
    }
  }
  if (run.length > 0) out.push(run);
  return out;
}
