// The severities of incidents in words. Pure.

import { filled, gettext, ngettext } from "../i18n.js";

const WORDS = { info: gettext("info"), warning: gettext("warning"), critical: gettext("critical") };
const COUNTED = {
  info: (count) => ngettext("%(count)s info", "%(count)s info", count),
  warning: (count) => ngettext("%(count)s warning", "%(count)s warning", count),
  critical: (count) => ngettext("%(count)s critical", "%(count)s critical", count),
};

/** Return a severity in words. */
export function severityText(severity) {
  return WORDS[severity] ?? severity;
}

/** Say how many incidents have a severity: "2 warning"; `text` is the number as it is shown. */
export function severityCount(severity, count, text) {
  return filled(COUNTED[severity](count), { count: text });
}
