// Drawn places in words. Pure.

import { filled, gettext, ngettext } from "../../i18n.js";

/** Say what a place, as `SketchAreas` has it, is: a polygon, or the corners of a rectangle. */
export function placeText(place) {
  const { polygon, area } = place ?? {};
  if (polygon)
    return filled(ngettext("A polygon of %(count)s corner", "A polygon of %(count)s corners", polygon.length), {
      count: polygon.length,
    });
  if (!area) return gettext("Nothing is drawn yet.");
  const [from, to] = [area.lo, area.hi].map(([lon, lat]) => `${lon}, ${lat}`);
  return filled(gettext("%(from)s to %(to)s"), { from, to });
}
