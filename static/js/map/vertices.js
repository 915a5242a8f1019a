// Moves, adds and removes the corners of a geometry. Pure. Rings are kept without their repeated last point.

const FEWEST = { Point: 1, MultiPoint: 1, LineString: 2, MultiLineString: 2, Polygon: 3, MultiPolygon: 3 };
// How deep the lists of points lie in the coordinates.
const DEPTH = { Point: 0, MultiPoint: 0, LineString: 0, MultiLineString: 1, Polygon: 1, MultiPolygon: 2 };

/** Return an editable copy `{type, nested}` of a geometry, with `turnDeg` added to its longitudes; null for a collection. */
export function opened({ type, coordinates }, turnDeg = 0) {
  if (!(type in FEWEST)) return null;
  const copy = (list) => (Array.isArray(list[0]) ? list.map(copy) : [list[0] + turnDeg, list[1]]);
  const nested = type === "Point" ? [copy(coordinates)] : copy(coordinates);
  if (isClosed(type)) for (const ring of lists(nested, DEPTH[type])) ring.pop();
  return { type, nested };
}

/** Return the geometry of an editable copy; a ring ends where it begins (RFC 7946 3.1.6). */
export function geometryOf({ type, nested }, turnDeg = 0) {
  const point = ([lon, lat]) => [rounded(lon - turnDeg), rounded(lat)];
  if (type === "Point") return { type, coordinates: point(nested[0]) };
  const closed = isClosed(type);
  const list = (points) => (closed ? [...points, points[0]] : points).map(point);
  const copy = (part, depth) => (depth === 0 ? list(part) : part.map((inner) => copy(inner, depth - 1)));
  return { type, coordinates: copy(nested, DEPTH[type]) };
}

/** Return an editable geometry of a type, made of the points that were drawn; null while they are too few. */
export function drawn(type, points) {
  if (points.length < FEWEST[type]) return null;
  return { type, nested: DEPTH[type] === 1 ? [points] : points };
}

/** Return the lists of points: rings, lines, or one list of all points. Changing a list changes the shape. */
export function linesOf({ type, nested }) {
  return lists(nested, DEPTH[type]);
}

/** Return the middles of edges, each with the index at which to insert a point there; single points have no edges. */
export function middlesOf({ type }, line) {
  if (type.endsWith("Point")) return [];
  const count = isClosed(type) ? line.length : line.length - 1;
  return Array.from({ length: count }, (_, i) => {
    const [a, b] = [line[i], line[(i + 1) % line.length]];
    return { at: i + 1, place: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
  });
}

/** Remove a point, unless too few would be left. Return whether it was removed. */
export function removePoint({ type }, line, at) {
  if (line.length <= FEWEST[type]) return false;
  line.splice(at, 1);
  return true;
}

function isClosed(type) {
  return type.endsWith("Polygon");
}

function lists(nested, depth) {
  return depth === 0 ? [nested] : nested.flatMap((inner) => lists(inner, depth - 1));
}

/** Seven decimals are a centimetre. */
function rounded(degrees) {
  return Math.round(degrees * 1e7) / 1e7;
}
