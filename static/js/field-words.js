// The names of the fields that Lookout's decoders give to objects, in words. Other fields keep the names of their feeds. Pure.

import { gettext, LOCALE } from "./i18n.js";

const WORDS = new Map([
  ["Speed", gettext("Speed")],
  ["Course", gettext("Course")],
  ["Heading", gettext("Heading")],
  ["Altitude", gettext("Altitude")],
  ["Altitude geometric", gettext("Altitude geometric")],
  ["Vertical rate", gettext("Vertical rate")],
  ["Rate of turn", gettext("Rate of turn")],
  ["Status", gettext("Status")],
  ["Name", gettext("Name")],
  ["Callsign", gettext("Callsign")],
  ["Kind", gettext("Kind")],
  ["Ais class", gettext("Ais class")],
  ["Ship type", gettext("Ship type")],
  ["Ship type code", gettext("Ship type code")],
  ["Length", gettext("Length")],
  ["Width", gettext("Width")],
  ["To bow", gettext("To bow")],
  ["To stern", gettext("To stern")],
  ["To port", gettext("To port")],
  ["To starboard", gettext("To starboard")],
  ["Draught", gettext("Draught")],
  ["Destination", gettext("Destination")],
  ["Aid type", gettext("Aid type")],
  ["Off position", gettext("Off position")],
  ["Virtual", gettext("Virtual")],
  ["Squawk", gettext("Squawk")],
  ["Emergency", gettext("Emergency")],
  ["On ground", gettext("On ground")],
  ["Category", gettext("Category")],
  ["Registration", gettext("Registration")],
  ["Aircraft type", gettext("Aircraft type")],
  ["Vehicle id", gettext("Vehicle id")],
  ["Label", gettext("Label")],
  ["License plate", gettext("License plate")],
  ["Route id", gettext("Route id")],
  ["Trip id", gettext("Trip id")],
  ["Direction id", gettext("Direction id")],
  ["Stop id", gettext("Stop id")],
  ["Odometer", gettext("Odometer")],
  ["Current status", gettext("Current status")],
  ["Occupancy", gettext("Occupancy")],
  ["Congestion", gettext("Congestion")],
  ["Temperature", gettext("Temperature")],
]);

/** Return an English label of a field in the user's language. */
export function fieldText(label) {
  return WORDS.get(label) ?? label;
}

/** Return a label as it is written within a sentence: German keeps the capital letters of its nouns. */
export function inSentence(label) {
  return LOCALE.startsWith("de") ? label : label.toLowerCase();
}
