// What the whole page is told: another theme, other units, and Escape. Whoever draws, or can be closed, subscribes where it is made.

const listeners = { theme: new Set(), units: new Set() };

/** What the user draws, in the order in which Escape ends it. Whoever draws something else ends it, too. */
const DRAWING = /** @type {const} */ (["area", "form", "rectangle", "statistics", "report"]);

/** What Escape closes, first things first: one thing each time. */
export const ESCAPES = /** @type {const} */ ([
  "menu",
  "why",
  "measuring",
  "filter",
  ...DRAWING,
  "table",
  "feature",
  "layer",
  "measurement",
  "kiosk",
  "tooltip",
  "selection",
]);

/** @type {Record<string, (() => unknown)[]>} */
const closers = Object.fromEntries(ESCAPES.map((step) => [step, []]));

/** The events of the page: `on("theme units", listener)`, and `emit(event)`, which tells those who subscribed, the first one first. */
export const pageEvents = {
  on(/** @type {string} */ events, /** @type {() => void} */ listener) {
    for (const event of events.split(" ")) listeners[event].add(listener);
  },
  emit(/** @type {keyof typeof listeners} */ event) {
    for (const listener of listeners[event]) listener();
  },
};

/**
 * Take part in Escape.
 *
 * @param {typeof ESCAPES[number]} step when it is its turn
 * @param {() => unknown} close returns true if there was something to close, which ends Escape
 */
export function onEscape(step, close) {
  closers[step].push(close);
}

/** Close the first thing that is open. Return whether there was one. */
export function escape() {
  return closeFirst(ESCAPES);
}

/** End what the user draws, before something else is drawn. Return whether there was something. */
export function stopDrawing() {
  return closeFirst(DRAWING);
}

function closeFirst(/** @type {readonly string[]} */ steps) {
  return steps.some((step) => closers[step].some((close) => close() === true));
}
