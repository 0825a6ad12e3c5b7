/** Events of a chunk. */
export const ROWS = 32_768;
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

/** Bytes of a column of numbers of 32 bits; there are five, and one of 16 bits. */
const WIDE = 4 * ROWS;
const SIZE = 5 * WIDE + 2 * ROWS;

/**
 * What is kept of some events that follow each other: 22 bytes an event, a column for each of what is asked for: to look through one
 * takes a nanosecond or two an event. A chunk of other types or of another time is left out.
 */
export class Chunk {
  readonly data: ChunkData;
  readonly #seconds: Uint32Array;
  readonly #places: Uint32Array;
  readonly #ids: Uint32Array;
  readonly #users: Uint32Array;
  readonly #clientUsers: Uint32Array;
  readonly #types: Uint16Array;
  readonly #numbers: Map<string, number>;

  constructor(data: ChunkData) {
    const { buffer, types } = data;
    this.data = data;
    const column = (nth: number): Uint32Array => new Uint32Array(buffer, nth * WIDE, ROWS);
    this.#seconds = column(0);
    this.#places = column(1);
    this.#ids = column(2);
    this.#users = column(3);
    this.#clientUsers = column(4);
    this.#types = new Uint16Array(buffer, 5 * WIDE, ROWS);
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
    this.#ids[count] = row.id;
    this.#users[count] = row.user;
    this.#clientUsers[count] = row.clientUser;
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
    for (let row = from; row >= to; row -= 1) if (this.#fits(row, types, wanted)) yield firstSeq + row;
  }

  #fits(row: number, types: Uint8Array | null, { id, user, since, until }: Wanted): boolean {
    if (id !== 0 && this.#ids[row] !== id) return false;
    if (user !== 0 && this.#users[row] !== user && this.#clientUsers[row] !== user) return false;
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

const BY_ROUTES = 'r';
const EXPLICIT = 'x';

function typeName(type: string, isExplicit: boolean): string {
  return (isExplicit ? EXPLICIT : BY_ROUTES) + type;
}
