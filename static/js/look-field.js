// The choice of a look: a colour, and a line. As long as nothing is chosen, the server chooses.

import { $, h } from "./dom.js";
import { filled, gettext } from "./i18n.js";
import { coloured, LINE_NAMES } from "./looks.js";

let made = 0;

/**
 * @param {Record<string, any>} parts `colours`, how many; `variable`, the start of their names in the style sheet; `onChoose(look)`; `within`, the
 *   identifier of an element that gets the field, if any
 * @returns {Record<string, any>} `element`; `show(look)`, null for none; `read()`, which returns the look
 */
export function createLookField({
  colours,
  variable,
  onChoose = /** @type {(...values: any[]) => any} */ (() => {}),
  within = "",
}) {
  const name = `look-colour-${++made}`;
  const chosen = () => {
    const colour = radios.findIndex(({ checked }) => checked);
    return colour < 0 ? null : Number(line.value) * colours + colour;
  };
  const radios = Array.from({ length: colours }, (_, colour) =>
    h("input", {
      type: "radio",
      name,
      style: `--colour: var(--${variable}${colour})`,
      "aria-label": filled(gettext("Colour %(number)s"), { number: colour + 1 }),
    }),
  );
  const line = h(
    "select",
    { "aria-label": gettext("Line") },
    ...LINE_NAMES.map((text, number) => h("option", { value: String(number) }, text)),
  );
  const element = h("div", { class: "look-field", role: "group", "aria-label": gettext("Colour") }, ...radios, line);
  element.addEventListener("change", (event) => {
    event.stopPropagation(); // it is no part of a plan
    if (chosen() === null) radios[0].checked = true;
    onChoose(chosen());
  });
  const show = (look) => {
    const { colour, line: number } = look === null ? { colour: -1, line: 0 } : coloured(look, colours);
    radios.forEach((radio, i) => (radio.checked = i === colour));
    line.value = String(number);
  };
  if (within) $(within).append(element);
  return { element, show, read: chosen };
}
