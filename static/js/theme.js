// Dark and light: the system's preference, unless the user chose.

import { pageEvents } from "./page-events.js";

const KEY = "lookout-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

/** Return the value that a colour of base.css or map.css has in the present theme. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/**
 * Connect the toggle button, and others that say that they are one. The page is told of every change, including one of the system.
 *
 * @returns {Record<string, any>} `toggle()`; `chosen()`, "dark" or "light", null as long as the system's preference holds; `show(theme)`, which does not
 *   remember the theme
 */
export function createTheme(button) {
  const buttons = [button, ...document.querySelectorAll("[data-theme-button]")];
  const show = () => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(isDark()));
  };
  const changed = () => {
    show();
    pageEvents.emit("theme");
  };
  const chosen = () => document.documentElement.dataset.theme ?? null;
  const showOnly = (theme) => {
    if (theme === chosen()) return;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    changed();
  };
  const toggle = () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Storage may be forbidden; the choice then holds for this page.
    }
    changed();
  };
  for (const each of buttons) each.addEventListener("click", toggle);
  system.addEventListener("change", changed);
  show();
  return { toggle, chosen, show: showOnly };
}
