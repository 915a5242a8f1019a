// The scale bar, in the chosen units.

import { units } from "./units.js";

/** A scale bar of Leaflet's whose text is in the chosen units; `update()` shows others. */
export function createScale(L, options) {
  const Scale = L.Control.Scale.extend({
    _addScales(_options, className, container) {
      this._bar = L.DomUtil.create("div", className, container);
    },
    _updateScales(metres) {
      if (metres) this._updateScale(this._bar, ...barOf(metres, (amount) => this._getRoundNum(amount)));
    },
    update() {
      if (this._map) this._update();
    },
  });
  return new Scale(options);
}

/** The text of a bar that stands for at most some metres, and which share of these it stands for. */
export function barOf(metres, round) {
  const { short, long } = units();
  const [symbol, each] = metres >= long[1] ? long : short;
  const amount = round(metres / each);
  return [`${amount} ${symbol}`, (amount * each) / metres];
}
