// The head of the page: UTC and local time, age of the data, state of the connection.

import { $, repeated, setText } from "./dom.js";
import { age, isUtc, lag, localClock, utcClock } from "./format.js";
import { filled, gettext } from "./i18n.js";

/** What the badge says, by the state of the connection. */
export const STATES = {
  loading: gettext("Loading…"),
  live: gettext("Live"),
  slow: gettext("Slow"),
  reconnecting: gettext("Connection lost"),
  offline: gettext("You are offline"),
  down: gettext("Engine down"),
  full: gettext("Too many connections"),
  "signed-out": gettext("Signed out"),
};
const RESYNC_SHOWN_MS = 4000;
const BREAK_MS = 1500;

export function createStatusBar(store, now) {
  const render = () => {
    const nowMs = now();
    const state = store.connection(nowMs);
    const resync = nowMs - store.resyncMs < RESYNC_SHOWN_MS;
    $("connection").dataset.state = resync && state === "live" ? "slow" : state;
    setText($("connection-text"), resync && state === "live" ? gettext("Caught up") : STATES[state]);
    const lagMs = store.behindMs();
    setText($("connection-lag"), Number.isFinite(lagMs) && (state === "live" || state === "slow") ? lag(lagMs) : "");
    setText($("data-age"), Number.isFinite(store.dataMs) ? age(nowMs - store.dataMs) : gettext("no data"));
    const clockMs = nowMs + store.clockOffsetMs;
    setText($("utc"), utcClock(clockMs));
    setText($("local"), localClock(clockMs));
    $("local").parentElement.hidden = isUtc(clockMs);
    $("offline").hidden = !isCut(state, nowMs - store.link.sinceMs);
    setText($("offline-text"), filled(MESSAGES[state] ?? "", { reason: store.link.reason }));
    $("offline-login").hidden = state !== "signed-out";
  };
  store.on("status", render);
  repeated(render, 500);
  render();
}

/** Return whether the page says that nothing new comes: not of a short break, since it often is over at once. */
function isCut(state, forMs) {
  return !["loading", "live", "slow"].includes(state) && (state === "full" || !(forMs < BREAK_MS));
}

const MESSAGES = {
  offline: gettext("This computer is offline. What you see is from before; Lookout connects again by itself."),
  reconnecting: gettext("The connection is lost. What you see is from before; trying again by itself."),
  down: gettext("The engine does not answer. What you see is from before; it is being restarted."),
  full: gettext(
    "The server refuses this page: %(reason)s. Close other pages of Lookout; this one tries again by itself.",
  ),
  "signed-out": gettext("You are signed out, or this page may not connect."),
};
