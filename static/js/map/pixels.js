// Copies pixels. Pure. A pixel is 32 bits with alpha highest; colours are not multiplied by alpha, as in ImageData.

/** Return the pixels of an image that are not transparent: `{width, height, x, y, pixels}`. */
export function pixelsOf({ data, width, height }) {
  const all = new Uint32Array(data.buffer, data.byteOffset, width * height);
  const seen = [];
  for (let i = 0; i < all.length; i++) if (all[i] >>> 24) seen.push(i);
  return {
    width,
    height,
    x: Int16Array.from(seen, (i) => i % width),
    y: Int16Array.from(seen, (i) => Math.floor(i / width)),
    pixels: Uint32Array.from(seen, (i) => all[i]),
  };
}

/** Copy an image's pixels over a frame `{width, height, pixels}`; leave out those beyond its edges. */
export function blit(frame, image, left, top) {
  const { x, y, pixels } = image;
  const { width, height, pixels: out } = frame;
  const inside = left >= 0 && top >= 0 && left + image.width <= width && top + image.height <= height;
  for (let i = 0; i < pixels.length; i++) {
    const px = left + x[i];
    const py = top + y[i];
    if (!inside && (px < 0 || py < 0 || px >= width || py >= height)) continue;
    const at = py * width + px;
    const source = pixels[i];
    out[at] = source >>> 24 === 255 || out[at] === 0 ? source : over(source, out[at]);
  }
}

/**
 * Return the pixel that results from one pixel over another.
 *
 * T. Porter, T. Duff, "Compositing digital images", SIGGRAPH 1984, the operator "over".
 */
export function over(source, below) {
  const a = (source >>> 24) / 255;
  const b = ((below >>> 24) / 255) * (1 - a);
  const alpha = a + b;
  const mix = (shift) => Math.round((((source >>> shift) & 255) * a + ((below >>> shift) & 255) * b) / alpha) << shift;
  return ((Math.round(alpha * 255) << 24) | mix(16) | mix(8) | mix(0)) >>> 0;
}
