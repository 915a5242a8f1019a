// The scale bar, in the chosen units.

import { units } from "../units.js";

/** Make a Leaflet scale bar with its text in the chosen units; call `update()` after others were chosen. */
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

/** Return the text of a bar of a round length of at most some metres, and its length as a share of these metres. */
export function barOf(metres, round) {
  const { short, long } = units();
  const [symbol, each] = metres >= long[1] ? long : short;
  const amount = round(metres / each);
  return [`${amount} ${symbol}`, (amount * each) / metres];
}
