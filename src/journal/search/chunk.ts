/** Events of a chunk: a row's number and one more fit into 16 bits. */
export const ROWS = 32_768;
const BUCKETS = 4096;
/** Types that a chunk tells apart; of the rest an event's own record says which it is. */
const MOST_TYPES = 1000;
/** Events between two frames that are noted. */
const EVERY = 64;
const ALIGN = 8;
/** A row that is nobody's, as of an event that was erased: no record begins there. */
const NOWHERE = 0;

/** What is wanted, by what a chunk holds of it; 0 or an empty text takes all. */
export interface Wanted {
  readonly id: number;
  readonly user: number;
  /** How the type begins. */
  readonly type: string;
  /** Types whose events are passed over, where routes say where they go. */
  readonly without: ReadonlySet<string>;
  /** Whole seconds since the epoch, both included. */
  readonly since: number;
  readonly until: number;
}

/** What is kept of an event. Ids are there as hashes, 0 for none: whether one is meant, its record says. */
export interface Row {
  readonly id: number;
  readonly user: number;
  readonly clientUser: number;
  readonly type: string;
  /** It says itself where it goes: of another one its type says it. */
  readonly isExplicit: boolean;
  /** Seconds since the epoch. */
  readonly second: number;
  /** Where its record begins in the file. */
  readonly at: number;
}

/** A chunk as it goes from one thread to another. */
export interface ChunkData {
  readonly firstSeq: number;
  readonly buffer: ArrayBuffer;
  readonly types: string[];
  readonly frames: Frame[];
  count: number;
  oldest: number;
  newest: number;
}

interface Frame {
  readonly seq: number;
  readonly at: number;
}

const WIDE = 4 * ROWS;
const NARROW = 2 * ROWS;
const CHAIN = 2 * NARROW + 2 * BUCKETS;
const SIZE = 2 * WIDE + NARROW + 3 * CHAIN;

/**
 * What is kept of some events that follow each other: 23 bytes an event, side by side. Who looks for an id or a user follows a
 * chain of those whose hashes end alike and passes by the others; a chunk of other types or of another time is left out.
 */
export class Chunk {
  readonly data: ChunkData;
  readonly #seconds: Uint32Array;
  readonly #places: Uint32Array;
  readonly #types: Uint16Array;
  readonly #ids: Chain;
  readonly #users: Chain;
  readonly #clientUsers: Chain;
  readonly #numbers: Map<string, number>;

  constructor(data: ChunkData) {
    const { buffer, types } = data;
    this.data = data;
    this.#seconds = new Uint32Array(buffer, 0, ROWS);
    this.#places = new Uint32Array(buffer, WIDE, ROWS);
    this.#types = new Uint16Array(buffer, 2 * WIDE, ROWS);
    const chains = 2 * WIDE + NARROW;
    this.#ids = new Chain(buffer, chains);
    this.#users = new Chain(buffer, chains + CHAIN);
    this.#clientUsers = new Chain(buffer, chains + 2 * CHAIN);
    this.#numbers = new Map(types.map((name, number) => [name, number]));
  }

  static from(firstSeq: number): Chunk {
    const buffer = new ArrayBuffer(SIZE);
    return new Chunk({ firstSeq, buffer, types: [], frames: [], count: 0, oldest: Infinity, newest: 0 });
  }

  get nextSeq(): number {
    return this.data.firstSeq + this.data.count;
  }

  get isFull(): boolean {
    return this.data.count === ROWS;
  }

  /** The next row; null for what is damaged. */
  push(row: Row | null): void {
    const { data } = this;
    const { count } = data;
    data.count += 1;
    if (row === null) return;
    this.#seconds[count] = row.second;
    this.#places[count] = row.at / ALIGN;
    this.#types[count] = this.#numberOf(typeName(row.type, row.isExplicit));
    this.#ids.add(count, row.id);
    this.#users.add(count, row.user);
    this.#clientUsers.add(count, row.clientUser);
    data.oldest = Math.min(data.oldest, row.second);
    data.newest = Math.max(data.newest, row.second);
  }

  /** A frame begins here, with this seq. */
  noteFrame(seq: number, at: number): void {
    const last = this.data.frames.at(-1);
    if (last === undefined || seq - last.seq >= EVERY) this.data.frames.push({ seq, at });
  }

  /** Where the last noted frame in front of a seq begins; null when there is none. */
  frameBefore(seq: number): number | null {
    return this.data.frames.findLast((frame) => frame.seq <= seq)?.at ?? null;
  }

  /** Where the record of an event begins. */
  placeOf(seq: number): number {
    return (this.#places[seq - this.data.firstSeq] ?? NOWHERE) * ALIGN;
  }

  /** Seqs of those that may be meant, newest first, below `before` and above `after`. */
  *matches(wanted: Wanted, after: number, before: number): Generator<number> {
    const { firstSeq, count, oldest, newest } = this.data;
    const to = Math.max(0, after + 1 - firstSeq);
    const from = Math.min(count, before - firstSeq) - 1;
    if (from < to || newest < wanted.since || oldest > wanted.until) return;
    const types = this.#wantedTypes(wanted);
    if (types?.every((isWanted) => isWanted === 0) === true) return;
    const span = { wanted, types, from, to };
    if (wanted.id !== 0) yield* this.#chained(this.#ids, null, wanted.id, span);
    else if (wanted.user !== 0) yield* this.#chained(this.#users, this.#clientUsers, wanted.user, span);
    else for (let row = from; row >= to; row -= 1) if (this.#fits(row, types, wanted)) yield firstSeq + row;
  }

  /** Each row once that is in one of two chains under a hash. */
  *#chained(one: Chain, other: Chain | null, hash: number, span: Span): Generator<number> {
    const { wanted, types, from, to } = span;
    let link = one.first(hash);
    let otherLink = other?.first(hash) ?? 0;
    while (link > to || otherLink > to) {
      const row = Math.max(link, otherLink) - 1;
      let isOfHash = false;
      if (link === row + 1) {
        isOfHash = one.has(row, hash);
        link = one.after(row);
      }
      if (other !== null && otherLink === row + 1) {
        isOfHash ||= other.has(row, hash);
        otherLink = other.after(row);
      }
      if (isOfHash && row <= from && this.#fits(row, types, wanted)) yield this.data.firstSeq + row;
    }
  }

  #fits(row: number, types: Uint8Array | null, { since, until }: Wanted): boolean {
    if (types !== null && types[this.#types[row] as number] === 0) return false;
    const second = this.#seconds[row] as number;
    return second >= since && second <= until && this.#places[row] !== NOWHERE;
  }

  #numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const { types } = this.data;
    if (types.length === MOST_TYPES) return MOST_TYPES;
    this.#numbers.set(name, types.length);
    return types.push(name) - 1;
  }

  /** By number; null takes all. */
  #wantedTypes({ type, without }: Wanted): Uint8Array | null {
    if (type === '' && without.size === 0) return null;
    const { types } = this.data;
    const hasOthers = types.length === MOST_TYPES;
    const wanted = new Uint8Array(types.length + (hasOthers ? 1 : 0)).fill(1);
    for (const [number, name] of types.entries()) {
      const own = name.slice(1);
      const isPassedOver = name.startsWith(BY_ROUTES) && without.has(own);
      if (isPassedOver || !own.startsWith(type)) wanted[number] = 0;
    }
    return wanted;
  }
}

interface Span {
  readonly wanted: Wanted;
  readonly types: Uint8Array | null;
  readonly from: number;
  readonly to: number;
}

const BY_ROUTES = 'r';
const EXPLICIT = 'x';

function typeName(type: string, isExplicit: boolean): string {
  return (isExplicit ? EXPLICIT : BY_ROUTES) + type;
}

/** Rows by hash, newest first: of each bucket the newest, and of each row the one before it. A link is a row's number and one. */
class Chain {
  readonly #heads: Uint16Array;
  readonly #links: Uint16Array;
  /** What of the hash the bucket does not say. */
  readonly #tags: Uint16Array;

  constructor(buffer: ArrayBuffer, at: number) {
    this.#heads = new Uint16Array(buffer, at, BUCKETS);
    this.#links = new Uint16Array(buffer, at + 2 * BUCKETS, ROWS);
    this.#tags = new Uint16Array(buffer, at + 2 * BUCKETS + NARROW, ROWS);
  }

  /** @param hash 0 for none */
  add(row: number, hash: number): void {
    if (hash === 0) return;
    const bucket = hash % BUCKETS;
    this.#links[row] = this.#heads[bucket] as number;
    this.#heads[bucket] = row + 1;
    this.#tags[row] = hash >>> 16;
  }

  /** 0 when there is none. */
  first(hash: number): number {
    return this.#heads[hash % BUCKETS] as number;
  }

  after(row: number): number {
    return this.#links[row] as number;
  }

  /** Of a row that is in the chain of the hash. */
  has(row: number, hash: number): boolean {
    return this.#tags[row] === hash >>> 16;
  }
}
