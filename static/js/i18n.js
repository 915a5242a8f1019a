// The page's strings in the user's language, by Django's catalogue for JavaScript; without one, as they are: English.

const catalogue = () => globalThis.django ?? {};

/** The language of the page, for `Intl`: how it writes numbers. */
export const LOCALE = localeOf(globalThis.document?.documentElement.lang);

function localeOf(language) {
  return !language || language === "en" ? "en-US" : language;
}

/** A number with at most `digits` decimals, and no trailing zeros, as the language writes it. */
export function number(value, digits) {
  return value.toLocaleString(LOCALE, { maximumFractionDigits: digits });
}

/** Return a text in the user's language. */
export const gettext = (text) => catalogue().gettext?.(text) ?? text;

/** Return a text of one thing, or of many, in the user's language. */
export const ngettext = (one, many, count) => catalogue().ngettext?.(one, many, count) ?? (count === 1 ? one : many);

/** Return a text that means one of several things, which the context tells, in the user's language. */
export const pgettext = (context, text) => catalogue().pgettext?.(context, text) ?? text;

/** Return a text with `%(name)s` replaced by the value of that name. */
export const filled = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
