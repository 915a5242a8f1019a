// The tabs of the side panel. On a phone, the panel is a sheet, and a tap on the open tab folds it away.

import { $ } from "./dom.js";

/** Names of the tabs; the first is shown at first. */
export const TABS = ["queries", "events", "incidents", "layers", "history", "statistics"];

/** @param {(...values: any[]) => any} onChange called after another tab is shown */
export function createTabs(onChange) {
  let [current] = TABS;
  const panel = $("panel");
  document.body.dataset.tab = current;
  const show = (name) => {
    current = name;
    panel.dataset.folded = "false";
    document.body.dataset.tab = name; // whose shapes the map shows
    panel.dispatchEvent(new Event("tab"));
    for (const other of TABS) {
      const open = other === name;
      $(`tab-${other}`).setAttribute("aria-selected", String(open));
      $(`tab-${other}`).tabIndex = open ? 0 : -1;
      $(`pane-${other}`).hidden = !open;
    }
    onChange();
  };
  TABS.forEach((name, i) => {
    const tab = $(`tab-${name}`);
    tab.addEventListener("click", () => {
      if (current === name && matchMedia("(max-width: 720px)").matches)
        panel.dataset.folded = String(panel.dataset.folded !== "true");
      else show(name);
    });
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: TABS.length - 1 }[key];
      if (!step) return;
      const next = TABS[(i + step) % TABS.length];
      show(next);
      $(`tab-${next}`).focus();
    });
  });
  return { show, current: () => current };
}
