// The colours of a density: even steps to the eye, and readable without telling red from green. Pure.

// Viridis by S. van der Walt and N. Smith (CC0), at eleven even steps, from low to high.
const VIRIDIS = [
  [68, 1, 84],
  [72, 36, 117],
  [65, 68, 135],
  [53, 95, 141],
  [42, 120, 142],
  [33, 145, 140],
  [34, 168, 132],
  [66, 190, 113],
  [122, 209, 81],
  [189, 223, 38],
  [253, 231, 37],
];

/**
 * Return the colour `[red, green, blue]` of a share from 0 to 1. What is low looks like the ground: dark on a dark map,
 * bright on a light one.
 */
export function colourAt(share, dark) {
  const at = clamped(dark ? share : 1 - share) * (VIRIDIS.length - 1);
  const below = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return VIRIDIS[below].map((from, i) => Math.round(from + (at - below) * (VIRIDIS[below + 1][i] - from)));
}

/** Return a colour as CSS writes it. */
export function css(/** @type {any[]} */ [red, green, blue], alpha = 1) {
  return `rgb(${red} ${green} ${blue} / ${alpha})`;
}

/** Return a gradient for a legend, from low to high, as CSS writes it. */
export function gradient(dark) {
  const stops = VIRIDIS.map((_, i) => css(colourAt(i / (VIRIDIS.length - 1), dark)));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function clamped(share) {
  return Math.min(Math.max(share, 0), 1);
}
