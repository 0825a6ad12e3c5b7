/** Types that are told apart; of the rest an event's own record says which it is. */
const MOST_TYPES = 65_000;
export const OTHER_TYPE = 65_535;
/** Events between two places that are noted. */
const EVERY = 64;
const FIRST = 1024;

/** Stands behind the type of an event that says itself where it goes: of another one its type says it. */
const EXPLICIT = '\u0000';

/** A number for each event type, and another one for those of its events that say themselves where they go. */
export class TypeNumbers {
  readonly #numbers = new Map<string, number>();

  of(type: string, isExplicit = false): number {
    const name = isExplicit ? type + EXPLICIT : type;
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    if (this.#numbers.size === MOST_TYPES) return OTHER_TYPE;
    this.#numbers.set(name, this.#numbers.size);
    return this.#numbers.size - 1;
  }

  /** By number, whether a type begins so. @param without types whose events are passed over where routes say where they go */
  wanted(prefix: string, without: readonly string[]): Uint8Array {
    const wanted = new Uint8Array(OTHER_TYPE + 1);
    for (const [type, number] of this.#numbers) if (type.startsWith(prefix)) wanted[number] = 1;
    for (const type of without) wanted[this.#numbers.get(type) ?? OTHER_TYPE] = 0;
    wanted[OTHER_TYPE] = 1;
    return wanted;
  }
}

/** What is wanted, by what the columns hold of it; 0 or null takes all. */
export interface Wanted {
  readonly id: number;
  readonly user: number;
  readonly types: Uint8Array | null;
  /** Whole seconds since the epoch, both included. */
  readonly since: number;
  readonly until: number;
}

export interface Row {
  readonly id: number;
  readonly user: number;
  readonly clientUser: number;
  readonly type: number;
  /** Seconds since the epoch. */
  readonly second: number;
}

/**
 * What is kept of the events of one segment, side by side: 18 bytes an event, so that ten million are looked through in
 * the time of reading them. Ids are there as hashes: whether one is meant, its record says.
 */
export class Columns {
  readonly firstSeq: number;
  #count = 0;
  #ids = new Uint32Array(FIRST);
  #users = new Uint32Array(FIRST);
  #clientUsers = new Uint32Array(FIRST);
  #types = new Uint16Array(FIRST);
  #seconds = new Uint32Array(FIRST);
  readonly #places: { readonly seq: number; readonly at: number }[] = [];

  constructor(firstSeq: number) {
    this.firstSeq = firstSeq;
  }

  get count(): number {
    return this.#count;
  }

  get nextSeq(): number {
    return this.firstSeq + this.#count;
  }

  add(seq: number, { id, user, clientUser, type, second }: Row): void {
    // What is damaged in between is nobody's.
    while (this.nextSeq < seq) this.#push({ id: 0, user: 0, clientUser: 0, type: OTHER_TYPE, second: 0 });
    if (seq === this.nextSeq) this.#push({ id, user, clientUser, type, second });
  }

  /** A frame begins here, with this seq. */
  noteFrame(seq: number, at: number): void {
    const last = this.#places.at(-1);
    if (last === undefined || seq - last.seq >= EVERY) this.#places.push({ seq, at });
  }

  /** Where the last noted frame in front of a seq begins; null when there is none. */
  placeBefore(seq: number): number | null {
    let [low, high] = [0, this.#places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#places[middle]?.seq ?? Infinity) <= seq) low = middle + 1;
      else high = middle;
    }
    return this.#places[low - 1]?.at ?? null;
  }

  /** Seqs of those that may be meant, newest first, below `before` and above `after`. */
  *matches(wanted: Wanted, after: number, before: number): Generator<number> {
    const to = Math.max(0, after + 1 - this.firstSeq);
    let at = Math.min(this.#count, before - this.firstSeq) - 1;
    for (;;) {
      at = this.#match(wanted, at, to);
      if (at < to) return;
      yield this.firstSeq + at;
      at -= 1;
    }
  }

  /** The newest from `from` down to `to` that may be meant; below `to` when there is none. */
  #match({ id, user, types, since, until }: Wanted, from: number, to: number): number {
    // Ten million turns: what they look at stands in variables of their own.
    const [ids, users, clientUsers] = [this.#ids, this.#users, this.#clientUsers];
    const [numbers, seconds] = [this.#types, this.#seconds];
    let at = from;
    for (; at >= to; at -= 1) {
      if (id !== 0 && ids[at] !== id) continue;
      if (user !== 0 && users[at] !== user && clientUsers[at] !== user) continue;
      if (types !== null && types[numbers[at] ?? OTHER_TYPE] === 0) continue;
      const second = seconds[at] ?? 0;
      if (second >= since && second <= until) break;
    }
    return at;
  }

  #push({ id, user, clientUser, type, second }: Row): void {
    if (this.#count === this.#ids.length) this.#grow();
    this.#ids[this.#count] = id;
    this.#users[this.#count] = user;
    this.#clientUsers[this.#count] = clientUser;
    this.#types[this.#count] = type;
    this.#seconds[this.#count] = second;
    this.#count += 1;
  }

  #grow(): void {
    const size = this.#count * 2;
    this.#ids = wider(this.#ids, new Uint32Array(size));
    this.#users = wider(this.#users, new Uint32Array(size));
    this.#clientUsers = wider(this.#clientUsers, new Uint32Array(size));
    this.#types = wider(this.#types, new Uint16Array(size));
    this.#seconds = wider(this.#seconds, new Uint32Array(size));
  }
}

function wider<T extends Uint32Array | Uint16Array>(before: T, after: T): T {
  after.set(before);
  return after;
}
