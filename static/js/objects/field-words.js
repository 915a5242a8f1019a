// The names of the fields that Lookout's decoders give to objects, in words. Other fields keep the names of their feeds. Pure.

import { gettext, LOCALE } from "../i18n.js";

const WORDS = {
  accuracy: gettext("Accuracy"),
  position_source: gettext("Position source"),
  test: gettext("Being tested"),
  speed: gettext("Speed"),
  course: gettext("Course"),
  heading: gettext("Heading"),
  altitude: gettext("Altitude"),
  altitude_geometric: gettext("Altitude geometric"),
  vertical_rate: gettext("Vertical rate"),
  rate_of_turn: gettext("Rate of turn"),
  status: gettext("Status"),
  name: gettext("Name"),
  callsign: gettext("Callsign"),
  kind: gettext("Kind"),
  mmsi: gettext("MMSI"),
  imo: gettext("IMO"),
  ais_class: gettext("AIS class"),
  ship_type: gettext("Ship type"),
  ship_type_code: gettext("Ship type code"),
  length: gettext("Length"),
  width: gettext("Width"),
  to_bow: gettext("To bow"),
  to_stern: gettext("To stern"),
  to_port: gettext("To port"),
  to_starboard: gettext("To starboard"),
  draught: gettext("Draught"),
  destination: gettext("Destination"),
  aid_type: gettext("Aid type"),
  off_position: gettext("Off position"),
  virtual: gettext("Virtual"),
  squawk: gettext("Squawk"),
  emergency: gettext("Emergency"),
  on_ground: gettext("On ground"),
  category: gettext("Category"),
  registration: gettext("Registration"),
  aircraft_type: gettext("Aircraft type"),
  vehicle_id: gettext("Vehicle id"),
  label: gettext("Label"),
  license_plate: gettext("License plate"),
  route_id: gettext("Route id"),
  trip_id: gettext("Trip id"),
  direction_id: gettext("Direction id"),
  stop_id: gettext("Stop id"),
  odometer: gettext("Odometer"),
  current_status: gettext("Current status"),
  occupancy: gettext("Occupancy"),
  congestion: gettext("Congestion"),
  temperature: gettext("Temperature"),
};

/** Return the label of a field, given its name without its unit: "ship_type" is "Ship type". */
export function fieldText(name) {
  if (Object.hasOwn(WORDS, name)) return WORDS[name];
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Return a label as it is written within a sentence: German keeps the capital letters of its nouns. */
export function inSentence(label) {
  return LOCALE.startsWith("de") || /^[A-Z]{2}/.test(label) ? label : label.toLowerCase();
}
