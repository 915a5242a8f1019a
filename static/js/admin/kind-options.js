// Forms of the admin with the options of several kinds: only those of the chosen kind are shown.

/** Show the options of the chosen kinds of a form, now and whenever another kind is chosen. */
export function followKinds(form) {
  for (const select of form.querySelectorAll("select[data-options-of]")) {
    const show = () => showOptions(form, select.dataset.optionsOf, select.value);
    select.addEventListener("change", show);
    show();
  }
}

function showOptions(form, part, kind) {
  let declared = false;
  for (const row of rowsOf(form, `field-${part}__`)) {
    const wanted = nameOf(row, `field-${part}__`).startsWith(`field-${part}__${kind}__`);
    declared ||= wanted;
    row.hidden = !wanted;
    for (const input of row.querySelectorAll("input, select, textarea")) input.disabled = !wanted;
  }
  // A kind from another package may declare no options; they are then one JSON object, as are options that a kind does not declare.
  for (const row of rowsOf(form, `field-${part}_options`)) {
    const options = row.querySelector("textarea")?.value.trim() ?? "";
    row.hidden = (declared || !kind) && ["", "{}"].includes(options);
  }
}

function rowsOf(form, prefix) {
  return [...form.querySelectorAll(".form-row")].filter((row) => nameOf(row, prefix));
}

function nameOf(row, prefix) {
  return [...row.classList].find((name) => name.startsWith(prefix)) ?? "";
}

/** Return an element with a text. */
export function text(kind, words, name = "") {
  const element = document.createElement(kind);
  element.textContent = words;
  element.className = name;
  return element;
}
