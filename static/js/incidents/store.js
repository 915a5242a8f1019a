// What the page knows of incidents, and how the server's messages change it. Pure: no DOM, no socket, no clock.

export const SEVERITIES = ["info", "warning", "critical"];
const KEPT = 3000; // incidents; beyond, the oldest closed ones are forgotten
const NONE = { info: 0, warning: 0, critical: 0 };

/** The incidents that the page has been told of, by number, and how many are open in all. */
export class Incidents {
  constructor() {
    this.known = new Map();
    this.open = { ...NONE }; // by severity, also those that are not listed
    this.newest = 0; // the highest number; what is told with a higher one is new
    this.fresh = []; // incidents that opened since `takeFresh`
    this.unsure = false; // whether `open` must be asked for
  }

  /** The number of open incidents of all severities. */
  get total() {
    return SEVERITIES.reduce((sum, severity) => sum + this.open[severity], 0);
  }

  /** Take over a page of the list, which tells how many are open; old incidents make no sound. */
  list({ incidents, open }) {
    for (const incident of incidents) this.#keep(incident);
    this.open = { ...NONE, ...open };
    this.unsure = false;
  }

  /** Take over how incidents stand. */
  tell(incidents) {
    for (const incident of incidents) this.#count(incident);
    for (const incident of incidents) this.#keep(incident);
    this.#trim();
  }

  /** Forget the incidents of a query, which nobody can see any more. */
  drop(query) {
    this.unsure = this.total > 0; // some of them may not be listed
    for (const [number, incident] of this.known) {
      if (incident.query !== query) continue;
      if (!incident.closed) this.open[incident.severity]--;
      this.known.delete(number);
    }
  }

  /** Forget what is not on a list that was asked for anew, given its numbers; what is newer than `since` came meanwhile. */
  retain(numbers, since) {
    for (const number of [...this.known.keys()]) if (number <= since && !numbers.has(number)) this.known.delete(number);
  }

  /** Return the incidents that opened since the last call. */
  takeFresh() {
    return this.fresh.splice(0);
  }

  /**
   * Return the incidents that pass filters: open ones first, snoozed ones after the other open ones, then closed ones, each the
   * newest first.
   *
   * @param {Record<string, any>} filters as `passes` has them
   */
  listed(filters, nowMs) {
    const rank = (incident) => (incident.closed ? 2 : snoozed(incident, nowMs) ? 1 : 0);
    return [...this.known.values()]
      .filter((incident) => passes(incident, filters, nowMs))
      .sort((a, b) => rank(a) - rank(b) || b.incident - a.incident);
  }

  #count(incident) {
    const { incident: number, severity, closed } = incident;
    const before = this.known.get(number);
    if (before) {
      this.open[severity] += Number(!closed) - Number(!before.closed);
    } else if (number > this.newest) {
      if (closed) return;
      this.open[severity]++;
      this.fresh.push(incident);
    } else this.unsure = true; // it is not listed, so it is not known whether it was open before
  }

  #keep(incident) {
    this.known.set(incident.incident, incident);
    this.newest = Math.max(this.newest, incident.incident);
  }

  #trim() {
    if (this.known.size <= 2 * KEPT) return;
    const closed = [...this.known.values()]
      .filter((incident) => incident.closed)
      .sort((a, b) => a.incident - b.incident);
    for (const { incident } of closed.slice(0, this.known.size - KEPT)) this.known.delete(incident);
  }
}

/** Return whether an incident is silent for a while. */
export function snoozed({ closed, snoozed_until: until }, nowMs) {
  return !closed && until !== null && Date.parse(until) > nowMs;
}

/**
 * Return whether an incident passes filters.
 *
 * @param {Record<string, any>} incident
 * @param {Record<string, any>} filters `severity`, `state` ("open", "new": nobody has acknowledged it, "snoozed" or "closed"), `query` (a
 *   number) and `assigned` (a user's name); null for all
 */
export function passes(incident, { severity, state, query, assigned }, nowMs) {
  return (
    (severity === null || incident.severity === severity) &&
    (query === null || incident.query === query) &&
    (assigned === null || incident.assigned_to === assigned) &&
    (state === null || STATES[state](incident, nowMs))
  );
}

const STATES = {
  open: ({ closed }) => !closed,
  new: ({ closed, acknowledged }) => !closed && !acknowledged,
  snoozed,
  closed: ({ closed }) => Boolean(closed),
};

/** How the messages about incidents change the store; each returns the topics that changed. */
export const INCIDENT_REDUCERS = {
  "incident.status"(store, { incidents }) {
    store.incidents.tell(incidents);
    return ["incidents"];
  },

  "incident.listed"(store, message) {
    store.incidents.list(message);
    return ["incidents"];
  },
};
