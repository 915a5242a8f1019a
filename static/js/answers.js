// The answer of one query: a set of objects, or of pairs of an object and a partner. Pure.

export class Answer {
  constructor() {
    this.slots = new Map(); // slot -> null, or the partners of a join: key -> {key, properties, distance}
    this.order = new Map(); // slot -> {rank, distance}, of nearest neighbours
    this.counts = new Map(); // partner's key -> how many objects it is paired with
    this.pairs = 0;
    this.changes = 0; // grows whenever something enters or leaves
  }

  /** How many objects there are. */
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

  /** Add an object, or a pair where there is a partner; returns whether it and whether its object is new. */
  add(slot, partner) {
    const known = this.has(slot, partner);
    const object = !this.slots.has(slot);
    if (object) this.slots.set(slot, partner ? new Map() : null);
    if (partner) this.#pair(slot, partner, known);
    if (!known) this.changes++;
    return { fresh: !known, object };
  }

  /** Remove an object, or a pair; returns whether it was there and whether its object is gone. */
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

  /** Say which neighbour an object is, 1 for the nearest, and how far away. */
  rank(slot, rank, distance) {
    this.order.set(slot, { rank, distance });
  }

  /** Nearest neighbours as `{slot, rank, distance}`, the nearest first. */
  neighbours() {
    return [...this.order].map(([slot, place]) => ({ slot, ...place })).sort((a, b) => a.rank - b.rank);
  }

  /** The partners of an object; [null] where it has none, as in a range query. */
  partners(slot) {
    const partners = this.slots.get(slot);
    return partners === null ? [null] : [...(partners?.values() ?? [])];
  }

  /** The objects that are paired with a partner. */
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
