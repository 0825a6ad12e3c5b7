/** Most events of a chunk. */
export const ROWS = 32_768;
/** Most types that a chunk distinguishes; the records of the other events say their type. */
const MOST_TYPES = 1000;
const ALIGN = 8;
/** Offset of a row without an event, such as an erased one: no record begins there. */
const NOWHERE = 0;

/** A query in terms of the columns; 0 and an empty text match all. */
export interface Wanted {
  readonly id: number;
  readonly user: number;
  /** Prefix of the type. */
  readonly type: string;
  /** Types of which only events with targets of their own match. */
  readonly without: ReadonlySet<string>;
  /** Seconds since the epoch, both included. */
  readonly since: number;
  readonly until: number;
}

/** What the index has of an event. Ids are hashes, 0 for none; the record decides whether a row matches. */
export interface Row {
  readonly id: number;
  readonly user: number;
  readonly clientUser: number;
  readonly type: string;
  /** True for an event with targets of its own; for others the routes decide. */
  readonly isExplicit: boolean;
  /** Seconds since the epoch. */
  readonly second: number;
  /** Offset of its record in the file. */
  readonly at: number;
}

/** A chunk on its way between the threads. */
export interface ChunkData {
  readonly firstSeq: number;
  readonly buffer: ArrayBuffer;
  readonly types: string[];
  count: number;
  oldest: number;
  newest: number;
}

/** Bytes of a column of 32-bit numbers; there are five, and one of 16-bit numbers. */
const WIDE = 4 * ROWS;
const SIZE = 5 * WIDE + 2 * ROWS;

/**
 * The index of consecutive events: 22 bytes an event, in columns; searching one takes a nanosecond or two an event. A chunk of other
 * types or of another time is skipped.
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
    return new Chunk({ firstSeq, buffer, types: [], count: 0, oldest: Infinity, newest: 0 });
  }

  get nextSeq(): number {
    return this.data.firstSeq + this.data.count;
  }

  get isFull(): boolean {
    return this.data.count === ROWS;
  }

  /** Adds the next row; null for a damaged or erased event. */
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

  /** Offset of an event's record; 0 for an event without one. */
  placeOf(seq: number): number {
    return (this.#places[seq - this.data.firstSeq] ?? NOWHERE) * ALIGN;
  }

  /** Seqs of rows that may match, newest first, below `before` and above `after`. */
  *matches(wanted: Wanted, after: number, before: number): Generator<number> {
    const { firstSeq, count, oldest, newest } = this.data;
    const to = Math.max(0, after + 1 - firstSeq);
    const from = Math.min(count, before - firstSeq) - 1;
    if (from < to || newest < wanted.since || oldest > wanted.until) return;
    const types = this.#wantedTypes(wanted);
    if (types?.every((isWanted) => isWanted === 0) === true) return;
    for (let row = from; row >= to; row -= 1) if (this.#mayMatch(row, types, wanted)) yield firstSeq + row;
  }

  #mayMatch(row: number, types: Uint8Array | null, { id, user, since, until }: Wanted): boolean {
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

  /** 1 for each wanted type, by number; null when all are wanted. */
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
