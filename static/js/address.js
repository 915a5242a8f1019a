// Keeps the address and the page together, so that Back and Forward step through views.

import { isStep, KEYS, readAddress, writeAddress } from "./url-state.js";

const OURS = { lookout: true }; // of entries of the history that hold all of the state

export class Address {
  view;
  showView;
  table;
  showTable;
  onFaults;
  window;
  connected;

  /**
   * @param {Record<string, any>} parts `view()` and `showView(view)`; `table()` and `showTable(state)`; `onFaults(texts)`, called with parts of an
   *   address that are not understood; `window`
   */
  constructor(parts) {
    Object.assign(this, { window: globalThis.window, ...parts, connected: new Map(), ready: false });
    this.window.addEventListener("popstate", ({ state }) => this.apply(this.window.location, Boolean(state?.lookout)));
  }

  /** Connect a key of `KEYS` with the page: `get()` returns its value, and `set(value)` shows it. */
  connect(name, { get, set }) {
    this.connected.set(name, { get, set });
  }

  /**
   * Show what an address `{search, hash}` holds. Of one that the page wrote itself (`whole`), missing keys are as usual, and those that
   * are no steps stay as they are: Back does not turn the theme. Of others, what is missing stays as it is.
   */
  apply(address, whole = false) {
    this.ready = false; // what is shown now is no step
    const { view, table, values, faults } = readAddress(address);
    // The table comes first, since its height moves the middle of the map; the view last, since panels change its size.
    this.showTable(table);
    for (const [name, { set }] of this.connected) {
      if (whole && !KEYS[name].step) continue;
      if (name in values || whole) set(values[name] ?? KEYS[name].usual);
    }
    if (view) this.showView(view);
    this.ready = true;
    if (faults.length > 0) this.onFaults(faults);
    this.write();
  }

  /** Write the state of the page: as a step of the history after a deliberate change, in place of the last entry otherwise. */
  write() {
    if (!this.ready) return;
    const { location, history } = this.window;
    const values = Object.fromEntries([...this.connected].map(([name, { get }]) => [name, get()]));
    const next = writeAddress({ view: this.view(), table: this.table(), values, search: location.search });
    if (next.search === location.search && next.hash === location.hash && history.state?.lookout) return;
    const step = history.state?.lookout && isStep(location, next);
    history[step ? "pushState" : "replaceState"](OURS, "", `${location.pathname}${next.search}${next.hash}`);
  }
}
