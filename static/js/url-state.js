// The view in the URL's hash: #zoom/latitude/longitude/stream,stream. Without the last part every stream is shown. After "&" comes the
// state of the table (table/address.js).

/** Read a hash; null if it does not hold a view. */
export function parseHash(hash) {
  const parts = hash.replace(/^#/, "").split("&")[0].split("/");
  const [zoom, lat, lon] = parts.slice(0, 3).map((part) => (part === "" ? NaN : Number(part)));
  if (![zoom, lat, lon].every(Number.isFinite) || zoom < 0 || zoom > 22 || Math.abs(lat) > 90) return null;
  const streams = parts.length > 3 ? parts[3].split(",").filter(Boolean).map(decodeURIComponent) : null;
  return { zoom, lat, lon, streams };
}

/** Write a hash; `streams` null for all. */
export function formatHash({ zoom, lat, lon, streams }) {
  const digits = Math.max(2, Math.ceil(zoom / 3));
  const view = `#${Math.round(zoom * 100) / 100}/${lat.toFixed(digits)}/${lon.toFixed(digits)}`;
  return streams ? `${view}/${streams.map(encodeURIComponent).join(",")}` : view;
}
