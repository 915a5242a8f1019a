// Incidents in words. Pure.

import { age, crossingText, length, reason, title, utcTime } from "../format.js";
import { filled, gettext, number } from "../i18n.js";
import { severityCount } from "./severities.js";
import { SEVERITIES, snoozed } from "./store.js";

const CHANGES = {
  opened: gettext("%(who)s opened it"),
  closed: gettext("%(who)s closed it"),
  acknowledged: gettext("%(who)s acknowledged it"),
  assigned: gettext("%(who)s assigned"),
  snoozed: gettext("%(who)s snoozed"),
  woken: gettext("%(who)s woken"),
};
/** What the server adds to changes. */
const DETAILS = [
  [/^by hand$/, gettext("by hand")],
  [/^to nobody$/, gettext("to nobody")],
  [/^to (?<name>.+)$/s, gettext("to %(name)s")],
  [/^until (?<time>.+)$/s, gettext("until %(time)s")],
  [/^the query failed$/, gettext("the query failed")],
  [/^the query waits for its layer$/, gettext("the query waits for its layer")],
  [/^the rule waits for a query that it watches$/, gettext("the rule waits for a query that it watches")],
  [
    /^the query was paused, because it took too much of the engine's time$/,
    gettext("the query was paused, because it took too much of the engine's time"),
  ],
  [/^it is no longer in the answer; its exit was lost$/, gettext("it is no longer in the answer; its exit was lost")],
  [/^its entry was lost$/, gettext("its entry was lost")],
];
/** What a user did to a query, so that its incidents closed. */
const DEEDS = [
  [/^changed what the query asks for$/, gettext("changed what the query asks for")],
  [/^paused the query$/, gettext("paused the query")],
  [/^made the query open no incidents$/, gettext("made the query open no incidents")],
  [/^deleted the query$/, gettext("deleted the query")],
];

/** Say what an incident is about: an object, a pair, a threshold that a figure crossed, or the query if it is about a whole answer. */
export function headline({ key, partner, name, properties }) {
  if (partner && "value" in properties)
    return crossingText({ queryName: name, group: key, threshold: partner, sign: 1, value: properties.value });
  const object = title(key || name, properties);
  if (!partner) return object;
  const distance = Number.isFinite(properties.distance) ? `, ${length(properties.distance)}` : "";
  return (
    filled(gettext("%(object)s with %(partner)s"), { object, partner: properties.partner_name ?? partner }) + distance
  );
}

/** Return the key to show beside the name of an object; null if it says nothing more. */
export function keyBeside({ key, partner, properties }) {
  return partner || title(key, properties) === key ? null : key;
}

/** Say how an incident stands: who has taken it, and until when it is silent. */
export function standing(incident, nowMs) {
  const { closed, closed_by: closer, acknowledged_by: acknowledger, assigned_to: assignee } = incident;
  const until = snoozed(incident, nowMs)
    ? filled(gettext("silent for %(duration)s"), { duration: age(Date.parse(incident.snoozed_until) - nowMs) })
    : "";
  const end = closer ? filled(gettext("closed by %(name)s"), { name: closer }) : gettext("closed");
  const seen = acknowledger && filled(gettext("seen by %(name)s"), { name: acknowledger });
  return [closed && end, seen, assignee && filled(gettext("for %(name)s"), { name: assignee }), until]
    .filter(Boolean)
    .join(" \u00b7 ");
}

/** Say a change of the audit log in words: "ann commented: on my way". */
export function changeText(/** @type {Record<string, any>} */ { user, what, text }) {
  const who = user ?? "Lookout";
  if (what === "commented") return `${who}: ${text}`;
  const detail =
    text && (["assigned", "snoozed"].includes(what) || user ? ` ${detailText(text)}` : `: ${detailText(text)}`);
  return filled(CHANGES[what] ?? "%(who)s %(what)s", { who, what }) + detail;
}

function detailText(text) {
  for (const [pattern, words] of DETAILS) {
    const found = pattern.exec(text);
    if (found) return filled(words, found.groups ?? {});
  }
  const [, name, done] = /^(\S+) (.+)$/s.exec(text) ?? [];
  const deeds = done?.split(" and ").map((deed) => DEEDS.find(([pattern]) => pattern.test(deed))?.[1]) ?? [];
  if (deeds.length > 0 && deeds.every(Boolean)) return `${name} ${deeds.join(gettext(" and "))}`;
  return reason(text, -1); // why an object left is one word, as in the events
}

/** The title of the page with the number of open incidents: "(3) Lookout". */
export function pageTitle(open) {
  return open > 0 ? `(${number(open, 0)}) Lookout` : "Lookout";
}

/** Say how many incidents are open: "3 open incidents: 1 critical, 2 warning". */
export function openText(open) {
  const total = SEVERITIES.reduce((sum, severity) => sum + open[severity], 0);
  const parts = [...SEVERITIES]
    .reverse()
    .filter((severity) => open[severity] > 0)
    .map((severity) => severityCount(severity, open[severity], number(open[severity], 0)));
  return total === 0
    ? gettext("No open incidents")
    : filled(gettext("%(count)s open: %(parts)s"), { count: number(total, 0), parts: parts.join(", ") });
}

/** Return the most urgent severity with open incidents; null without any. */
export function worst(open) {
  return [...SEVERITIES].reverse().find((severity) => open[severity] > 0) ?? null;
}

/** Say when an incident began, and for a closed one also when it ended. */
export function timesText({ opened, closed }) {
  const from = utcTime(Date.parse(opened));
  return closed
    ? filled(gettext("%(from)s to %(to)s"), { from: from.replace(" UTC", ""), to: utcTime(Date.parse(closed)) })
    : from;
}
