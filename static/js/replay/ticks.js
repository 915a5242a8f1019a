// Where the events of a span lie on the slider. Pure.

/** Return the place of a time on a slider of some width, in pixels from its left end. */
export function placeOf(ms, { fromMs, toMs }, width) {
  return toMs > fromMs ? ((ms - fromMs) / (toMs - fromMs)) * width : 0;
}

/** Return the event that is nearest to a place on the slider, at most `reachPx` away; undefined without one. */
export function eventAt(events, x, span, width, reachPx) {
  let [found, least] = [undefined, reachPx];
  for (const event of events) {
    const far = Math.abs(placeOf(event.timeMs, span, width) - x);
    if (far <= least) [found, least] = [event, far];
  }
  return found;
}

/**
 * Return the ticks of events `{x, colour, entered}`, where each pixel has one of each colour and sign at most: thousands of events
 * are no more work to draw than the slider is wide.
 */
export function ticksOf(events, span, width) {
  const ticks = new Map();
  for (const { timeMs, colour, sign } of events) {
    const x = Math.round(placeOf(timeMs, span, width));
    if (x < 0 || x > width) continue;
    ticks.set(`${x} ${colour} ${sign}`, { x, colour, entered: sign > 0 });
  }
  return [...ticks.values()].sort((a, b) => a.x - b.x);
}

/** Return the parts of a span for which something is stored, as shares `[from, to]` of it. */
export function storedParts(streams, { fromMs, toMs }) {
  const share = (ms) => Math.min(1, Math.max(0, (ms - fromMs) / (toMs - fromMs)));
  return streams
    .filter(({ first_us: first, last_us: last }) => first !== null && last / 1000 >= fromMs && first / 1000 <= toMs)
    .map(({ first_us: first, last_us: last }) => [share(first / 1000), share(last / 1000)]);
}
