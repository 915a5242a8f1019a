// What the browser's types do not know of this page, for the check of types only; no browser loads this file.

interface Window {
  Arrow: any;
  protomapsL: any;
  uPlot: any;
}

// `querySelector` and events give an element of whichever kind the templates have there.
interface Element {
  blur(): void;
  checked: any;
  dataset: any;
  elements: any;
  focus(options?: FocusOptions): void;
  hidden: any;
  offsetHeight: any;
  style: any;
  value: any;
}
interface EventTarget {
  closest(selectors: string): any;
  matches(selectors: string): boolean;
}
