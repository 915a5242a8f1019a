// Which rows of a long list are in the document: those in view, and some beside them. Pure.

const BESIDE = 8; // rows above and below the view, for scrolling that is ahead of drawing

/** Return `{first, last}`, the rows to draw: from `first` up to and without `last`. */
export function rowsInView({ scrollTop, height, rowHeight, count }) {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - BESIDE);
  const last = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + BESIDE);
  return { first: Math.min(first, last), last };
}

/** Return how far to scroll so that a row is in view; the present distance if it is already. */
export function scrolledTo(row, { scrollTop, height, rowHeight }) {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  return Math.max(scrollTop, top + rowHeight - height);
}

/** Return the row that a key moves to from a row; undefined for a key that moves nothing. */
export function rowAfter(key, row, { count, page }) {
  const moved = {
    ArrowDown: row + 1,
    ArrowUp: row - 1,
    PageDown: row + page,
    PageUp: row - page,
    Home: 0,
    End: count - 1,
  }[key];
  return moved === undefined ? undefined : Math.max(0, Math.min(count - 1, moved));
}
