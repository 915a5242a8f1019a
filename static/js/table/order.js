// Sorts rows by numbers, in linear time. Pure.

const DIGIT_BITS = 16;
const DIGITS = 1 << DIGIT_BITS;

/** Sorts slots stably by keys; it keeps its working space from one sort to the next. */
export class Sorter {
  slots;
  order;
  textSlots;
  missingSlots;
  spare;

  constructor() {
    this.counts = new Uint32Array(DIGITS);
    this.#grow(1024);
  }

  /**
   * Sort the first `n` slots, in place: numbers by size, then texts by rank, and last those without a value. Slots with equal
   * keys keep their order, also if it is descending. Descending, texts come before numbers.
   *
   * @param {Int32Array} slots
   * @param {number} n
   * @param {Record<string, any>} by `numberOf` returns the number of a slot; NaN without one; `rankOf` the
   *   rank of the text of a slot, from 0 on; -1 without one; it is asked if there is no number; `descending`, the direction
   */
  sort(slots, n, { numberOf, rankOf, descending }) {
    if (n > this.capacity) this.#grow(Math.max(n, 2 * this.capacity));
    let [numbers, texts, missing] = [0, 0, 0];
    const { keys, textKeys, textSlots, missingSlots } = this;
    for (let i = 0; i < n; i++) {
      const slot = slots[i];
      const number = numberOf(slot);
      if (!Number.isNaN(number)) {
        keys[numbers] = number + 0; // -0 is 0
        this.slots[numbers++] = slot;
        continue;
      }
      const rank = rankOf(slot);
      if (rank < 0) missingSlots[missing++] = slot;
      else {
        textKeys[texts] = rank;
        textSlots[texts++] = slot;
      }
    }
    const [first, second] = descending ? [texts, numbers] : [numbers, texts];
    if (descending) {
      this.#part(textSlots, textKeys, texts, true, slots, 0);
      this.#part(this.slots, keys, numbers, true, slots, first);
    } else {
      this.#part(this.slots, keys, numbers, false, slots, 0);
      this.#part(textSlots, textKeys, texts, false, slots, first);
    }
    for (let i = 0; i < missing; i++) slots[first + second + i] = missingSlots[i];
  }

  /** Write `n` slots in the order of their keys to `out`, from `at` on. */
  #part(slots, keys, n, descending, out, at) {
    this.#radix(slots, keys, n, descending);
    for (let i = 0; i < n; i++) out[at + i] = slots[this.order[i]];
  }

  /**
   * Set `order` to the positions of keys in their order: a radix sort by digits of 16 bits, the least significant first.
   *
   * The bits of a float order as its value does once those of negative numbers are turned and the others get their sign bit set
   * (M. Herf, "Radix tricks", 2001).
   */
  #radix(slots, keys, n, descending) {
    const bits = new Uint32Array(keys.buffer, 0, 2 * n);
    const turn = descending ? 0xffffffff : 0;
    for (let i = 0; i < 2 * n; i += 2) {
      const negative = bits[i + 1] >>> 31;
      bits[i] = (negative ? ~bits[i] : bits[i]) ^ turn;
      bits[i + 1] = (negative ? ~bits[i + 1] : bits[i + 1] | 0x80000000) ^ turn;
    }
    let { order, spare } = this;
    for (let i = 0; i < n; i++) order[i] = i;
    for (let digit = 0; digit < 4; digit++) {
      const word = digit >> 1;
      const shift = DIGIT_BITS * (digit & 1);
      const { counts } = this;
      counts.fill(0);
      for (let i = 0; i < n; i++) counts[(bits[2 * i + word] >>> shift) & (DIGITS - 1)]++;
      if (n > 0 && counts[(bits[word] >>> shift) & (DIGITS - 1)] === n) continue; // all have the same digit
      let before = 0;
      for (let value = 0; value < DIGITS; value++) {
        const count = counts[value];
        counts[value] = before;
        before += count;
      }
      for (let i = 0; i < n; i++) spare[counts[(bits[2 * order[i] + word] >>> shift) & (DIGITS - 1)]++] = order[i];
      [order, spare] = [spare, order];
    }
    Object.assign(this, { order, spare });
  }

  #grow(capacity) {
    this.capacity = capacity;
    this.keys = new Float64Array(capacity);
    this.textKeys = new Float64Array(capacity);
    for (const name of ["slots", "textSlots", "missingSlots", "order", "spare"]) this[name] = new Int32Array(capacity);
  }
}
