// The pages of teams: the theme, and a question before something is deleted.

import { $ } from "../dom.js";
import { createTheme } from "../theme.js";

createTheme($("theme"));
for (const button of document.querySelectorAll("[data-confirm]")) {
  button.addEventListener("click", (event) => {
    if (!window.confirm(button.dataset.confirm)) event.preventDefault();
  });
}
