// Questions to the sketch of a stream, whose answers are documents.

import { rangeText } from "../words.js";

export const sketch = {
  report: "sketch",
  asked: true,
  claims: ({ kind }) => kind === "sketch",
  words: rangeText,
};
