// Queries that the engine leaves out for a while, for lack of room or because they failed, and rules that watch them. Pure.

import { localClock } from "../format.js";
import { filled, gettext } from "../i18n.js";

const TRIED_WITHIN_MS = 10_000; // so soon after the end of the pause, the server says if the query is left out again

const WORDS = {
  room: gettext("Left out, because %(error)s. It is tried again at %(time)s, and at once if you edit it."),
  failure: gettext(
    "Left out, because it failed: %(error)s. It is tried again at %(time)s, and at once if you edit it.",
  ),
  watched: gettext("No object enters by this rule: %(error)s. That query is tried again at %(time)s."),
};

/** Return why the answer of a query is missing, as the server said it; null if it is there by the server's clock. */
export function leftOut({ status, left_out: told }, nowMs) {
  return status === "running" && told && nowMs < Date.parse(told.until) + TRIED_WITHIN_MS ? told : null;
}

/** Say why the answer of a query is missing, and when it is tried again; empty if it is there. */
export function leftOutText(query, nowMs, timeZone) {
  const told = leftOut(query, nowMs);
  return told
    ? filled(WORDS[told.cause], { error: told.error, time: localClock(Date.parse(told.until), timeZone) })
    : "";
}

/** Return whether the engine leaves a query itself out, and not one that it watches. */
export function isLeftOut(query, nowMs) {
  return ["room", "failure"].includes(leftOut(query, nowMs)?.cause);
}
