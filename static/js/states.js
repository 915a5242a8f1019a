// The states of queries, layers and streams, and whether a stream is live, in words. Pure.

import { gettext } from "./i18n.js";

const WORDS = {
  cancelled: gettext("cancelled"),
  failed: gettext("failed"),
  left_out: gettext("left out"),
  importing: gettext("importing"),
  paused: gettext("paused"),
  pending: gettext("pending"),
  ready: gettext("ready"),
  recorded: gettext("recorded"),
  running: gettext("running"),
  stale: gettext("not up to date"),
  simulated: gettext("simulated"),
  waiting: gettext("waiting"),
};

/** Return a state, as the server names it, in the user's language. */
export function stateText(name) {
  return WORDS[name] ?? name;
}
