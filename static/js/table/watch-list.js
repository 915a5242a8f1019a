// The watch list: objects that the user has starred, by stream and key. Pure.

export const MOST_WATCHED = 500;
const SETTINGS = { crossings: true, silence: true, silentMin: 10, sound: false };

export class WatchList {
  /** @param {Record<string, any>} remembered what `kept` returned at an earlier visit; null for nothing */
  constructor(remembered, onChange) {
    const { objects, ...settings } = remembered ?? {};
    this.onChange = onChange;
    this.settings = { ...SETTINGS, ...settings };
    this.objects = new Map(
      (Array.isArray(objects) ? objects : []).map((object) => [nameOf(object.stream, object.key), object]),
    );
  }

  get size() {
    return this.objects.size;
  }

  has(stream, key) {
    return this.objects.size > 0 && this.objects.has(nameOf(stream, key));
  }

  all() {
    return this.objects.values();
  }

  /** Star an object, which is called `title`, or take its star away. Return whether it has one; null if there are too many. */
  toggle(stream, key, title) {
    if (this.objects.delete(nameOf(stream, key))) {
      this.onChange();
      return false;
    }
    if (this.objects.size >= MOST_WATCHED) return null;
    this.objects.set(nameOf(stream, key), { stream, key, title });
    this.onChange();
    return true;
  }

  set(settings) {
    Object.assign(this.settings, settings);
    this.onChange();
  }

  clear() {
    this.objects.clear();
    this.onChange();
  }

  /** Return the keys of the watched objects by stream. */
  byStream() {
    const keys = {};
    for (const { stream, key } of this.all()) (keys[stream] ??= []).push(key);
    return keys;
  }

  /** Return what to remember. */
  kept() {
    return { objects: [...this.all()], ...this.settings };
  }
}

function nameOf(stream, key) {
  return `${stream}\n${key}`; // names of streams have no line breaks
}
