// The only module that talks to /replay/ over HTTP.

import { filled, gettext } from "../i18n.js";
import { readPage } from "./pages.js";

const ROOT = "/replay/";

export class ReplayApi {
  constructor(Arrow) {
    this.Arrow = Arrow;
    this.session = crypto.randomUUID?.() ?? String(Math.random()); // by which the server has pages of answers follow each other
  }

  /** Return a promise of what is stored: `{streams: [{name, life_s, first_us, last_us}], now_us}`. */
  async stored() {
    return (await answered("")).json();
  }

  /** Return a promise of a page of a stream's elements in an area `{west, south, east, north}`, thinned out to one of each object in a step. */
  async elements(stream, { west, south, east, north }, span, { scene, stepMs }, signal) {
    const parameters = {
      bbox: [west, south, east, north].join(","),
      ...inUs(span),
      ...(scene && { scene: "1" }),
      ...(stepMs > 0 && { step_us: 1000 * stepMs }),
    };
    const response = await answered(
      `elements/${encodeURIComponent(stream)}?${new URLSearchParams(asTexts(parameters))}`,
      signal,
    );
    return readPage(this.Arrow, await response.arrayBuffer());
  }

  /**
   * Return a promise of a page of the answers of some queries; `refused` has the errors of those that cannot be played. Unless
   * `sceneMs` is null, the page has only answers at that time, of its `queries`, and the page of the span is still the next one.
   */
  async answers(queries, span, endMs, sceneMs, signal) {
    const parameters = new URLSearchParams(
      asTexts({
        queries: queries.join(","),
        ...inUs(span),
        end_us: Math.round(endMs * 1000),
        session: this.session,
        ...(sceneMs !== null && { scene_us: Math.round(sceneMs * 1000) }),
      }),
    );
    const response = await answered(`answers?${parameters}`, signal);
    return readPage(this.Arrow, await response.arrayBuffer());
  }

  /** Return a promise of the recorded events of a span: `{events, truncated}`. */
  async events(span) {
    return (await answered(`events?${new URLSearchParams(asTexts(inUs(span)))}`)).json();
  }
}

/** Return a promise of a page of the events that are kept of a query, the newest first: `{events, next, kept}`; `before` is the `next` of the page before. */
export async function keptEvents(query, before = null) {
  return (await answered(`events/${query}${before === null ? "" : `?before=${before}`}`)).json();
}

/** Return a promise of a response; it fails with the server's words. */
async function answered(path, signal) {
  let response;
  try {
    response = await fetch(ROOT + path, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(gettext("The server cannot be reached. Try again in a moment."), { cause: error });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Error(
    told.error ?? filled(gettext("The server answered with status %(status)s."), { status: response.status }),
  );
}

function inUs({ fromMs, toMs }) {
  return { from_us: Math.round(fromMs * 1000), to_us: Math.round(toMs * 1000) };
}

/** Return parameters with their values as texts. */
function asTexts(parameters) {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
}
