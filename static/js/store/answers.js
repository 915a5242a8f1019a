// The answer of one query: a set of objects, or of pairs of an object and a partner. Pure.

export class Answer {
  constructor() {
    this.slots = new Map(); // slot -> null, or the partners of a join: key -> {key, properties, distance}
    this.order = new Map(); // slot -> {rank, distance}, of nearest neighbours
    this.counts = new Map(); // partner's key -> how many objects it is paired with
    this.pairs = 0;
    this.changes = 0; // grows whenever something enters or leaves
  }

  /** The number of objects in the answer. */
  get size() {
    return this.slots.size;
  }

  hasObject(slot) {
    return this.slots.has(slot);
  }

  has(slot, partner) {
    const partners = this.slots.get(slot);
    return partner ? Boolean(partners?.has(partner.key)) : partners !== undefined;
  }

  /** Add an object, or a pair if there is a partner. Return `{fresh, object}`: whether it is new, and whether its object is. */
  add(slot, partner) {
    const known = this.has(slot, partner);
    const object = !this.slots.has(slot);
    if (object) this.slots.set(slot, partner ? new Map() : null);
    if (partner) this.#pair(slot, partner, known);
    if (!known) this.changes++;
    return { fresh: !known, object };
  }

  /** Remove an object, or a pair. Return `{gone, object}`: whether it was there, and whether its object left the answer. */
  delete(slot, partner) {
    if (!this.has(slot, partner)) return { gone: false, object: false };
    this.changes++;
    const partners = this.slots.get(slot);
    if (partner) this.#unpair(partners, partner.key);
    else for (const key of partners ? [...partners.keys()] : []) this.#unpair(partners, key);
    const object = !partners || partners.size === 0;
    if (object) this.slots.delete(slot);
    this.order.delete(slot);
    return { gone: true, object };
  }

  /** Record the rank of a neighbour, 1 for the nearest, and its distance in metres. */
  rank(slot, rank, distance) {
    this.order.set(slot, { rank, distance });
  }

  /** Nearest neighbours as `{slot, rank, distance}`, the nearest first. */
  neighbours() {
    return [...this.order].map(([slot, place]) => ({ slot, ...place })).sort((a, b) => a.rank - b.rank);
  }

  /** Return the partners of an object; [null] if it has none, as in a range query; [] if it is not in the answer. */
  partners(slot) {
    const partners = this.slots.get(slot);
    return partners === null ? [null] : [...(partners?.values() ?? [])];
  }

  /** Return the slots of the objects that are paired with the partner of a key. */
  slotsWith(key) {
    if (!this.counts.has(key)) return [];
    return [...this.slots].filter(([, partners]) => partners?.has(key)).map(([slot]) => slot);
  }

  #pair(slot, partner, known) {
    let partners = this.slots.get(slot);
    if (partners === null) this.slots.set(slot, (partners = new Map()));
    partners.set(partner.key, partner);
    if (known) return;
    this.pairs++;
    this.counts.set(partner.key, (this.counts.get(partner.key) ?? 0) + 1);
  }

  #unpair(partners, key) {
    partners.delete(key);
    this.pairs--;
    const left = this.counts.get(key) - 1;
    if (left > 0) this.counts.set(key, left);
    else this.counts.delete(key);
  }
}
