// Opens the menu of queries around an object or a place: by a right click, a long press, or the keyboard.

import { aboutObject, aboutPlace, placeOf } from "./around-targets.js";
import { $ } from "../dom.js";
import { gettext } from "../i18n.js";
import { onLongPress } from "../map/long-press.js";
import { toast } from "../toasts.js";

/**
 * Listen to the map.
 *
 * @param {Record<string, any>} parts `store`, `map`, `menu`, `shown(stream)`; `busy()` tells whether a click is for something else, and
 *   `onOpen()` is called before the menu opens at a pointer
 * @returns {function} opens the menu of the selected object, or of the middle of the map
 */
export function openingAroundMenu({ store, map, menu, shown, busy, onOpen }) {
  const show = (target, point) => {
    if (target.stream) menu.show(target, point);
    else toast(gettext("No stream is switched on, so there is nothing to query here."));
  };
  const openAt = (event) => {
    if (busy()) return;
    onOpen();
    const slot = map.objects.hit(map.leaflet.mouseEventToContainerPoint(event));
    const place = placeOf(map.leaflet.mouseEventToLatLng(event));
    const target =
      slot === undefined
        ? aboutPlace(store, shown, place)
        : aboutObject(store, store.objects.streams[slot], store.objects.keys[slot]);
    show(target, { x: event.clientX, y: event.clientY });
  };
  map.leaflet.on("contextmenu", ({ originalEvent }) => {
    originalEvent.preventDefault();
    openAt(originalEvent);
  });
  onLongPress($("map"), (event) => !event.target.closest(".leaflet-control, .handle") && openAt(event));
  map.leaflet.on("movestart zoomstart", () => menu.close(false));
  return () => {
    const { selected } = store;
    const box = $("map").getBoundingClientRect();
    const middle = { x: box.left + box.width / 2, y: box.top + box.height / 2 };
    show(
      selected
        ? aboutObject(store, selected.stream, selected.key)
        : aboutPlace(store, shown, placeOf(map.leaflet.getCenter())),
      middle,
    );
  };
}
