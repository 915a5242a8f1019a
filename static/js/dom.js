// What every panel needs to work with the page: elements, text and timing.

/**
 * Make an element: `h("button", {class: "icon", onclick: f, "aria-label": "Close"}, child, ...)`.
 *
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...any} children
 * @returns {any} an element of the kind that the tag says
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * Return an element of the page by its id; its template says of which kind it is.
 *
 * @param {string} id
 * @returns {any}
 */
export function $(id) {
  return document.getElementById(id);
}

/** Set an element's text, only when it differs: an unchanged screen costs no layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Offer choices `[[group, [[value, text], ...]], ...]`; a group without a name gets no heading. Unless `chosen` is given, the
 * present choice stays, even if it is not offered any more. An unchanged list is not written again, since it may be open.
 */
export function offer(select, groups, chosen = select.value) {
  const all = groups.flatMap(([, choices]) => choices);
  const odd =
    chosen && !all.some(([value]) => value === chosen) ? [[chosen, chosen.slice(chosen.indexOf(":") + 1)]] : [];
  const wanted = JSON.stringify([groups, odd]);
  if (select.dataset.offered !== wanted) {
    select.dataset.offered = wanted;
    const options = (choices) => choices.map(([value, text]) => new Option(text, value));
    const filled = groups.filter(([, choices]) => choices.length > 0);
    select.replaceChildren(
      ...filled.flatMap(([label, choices]) =>
        label ? [h("optgroup", { label }, ...options(choices))] : options(choices),
      ),
      ...options(odd),
    );
  }
  select.value = chosen || (select.options[0]?.value ?? "");
}

/** An icon from the page's SVG symbols. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon-svg");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

// A press ends on the element that it began on, or it is none. So what is pressed is not drawn anew, though not for ever.
const PRESSED = ["button", "a", "label", "summary"].map((tag) => `${tag}:active`).join();
const PRESS_MS = 50;
const PRESS_AT_MOST_MS = 2000;

/**
 * Return a function that runs `draw` at most once in `intervalMs`, however often it is called, and always after the last call;
 * not while something is being pressed.
 *
 * @param {() => void} draw
 * @param {number} intervalMs
 */
export function coalesced(draw, intervalMs) {
  let timer = /** @type {any} */ (null);
  let lastMs = -Infinity;
  const drawUnlessPressed = (waitedMs) => {
    if (waitedMs < PRESS_AT_MOST_MS && globalThis.document?.querySelector(PRESSED)) {
      timer = setTimeout(drawUnlessPressed, PRESS_MS, waitedMs + PRESS_MS);
      return;
    }
    timer = null;
    lastMs = performance.now();
    draw();
  };
  return () => {
    if (timer === null) timer = setTimeout(drawUnlessPressed, Math.max(0, lastMs + intervalMs - performance.now()), 0);
  };
}

/** Run `draw` every `intervalMs`, for what changes with time alone; not while something is being pressed. */
export function repeated(draw, intervalMs) {
  setInterval(coalesced(draw, 0), intervalMs);
}

export function debounced(run, waitMs) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, waitMs);
  };
}

export const lessMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
