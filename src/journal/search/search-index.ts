import { MOST_EVENTS } from '../batch.ts';
import { randomInt } from 'node:crypto';
import { canonicalId } from '../../core/named-ids.ts';
import type { FoundEvent, SearchQuery, SearchResult } from '../../core/search.ts';
import { SEGMENT_HEADER } from '../segments/format.ts';
import { textsAt } from '../segments/records.ts';
import { segmentsIn } from '../segments/segment.ts';
import { Chunk, type ChunkData, type Wanted } from './chunk.ts';
import { hashOf, hashOfUser, type ReadLimits, SegmentReader } from './segment-reader.ts';

/** A segment, and how far it is read. */
interface IndexedSegment {
  readonly name: string;
  readonly reader: SegmentReader;
  readonly chunks: Chunk[];
  at: number;
  /** All of its events up to this seq are read, as far as they are undamaged. */
  doneTo: number;
  /** True while the other thread reads it. */
  isTaken: boolean;
}

/** The rest of a segment that is not read. */
export interface UnreadRange extends Omit<ReadLimits, 'end'> {
  readonly name: string;
  readonly at: number;
  readonly firstSeq: number;
  /** Seed of the hashes. */
  readonly seed: number;
}

/** A range after reading, up to one chunk. */
export interface ReadRange {
  readonly range: UnreadRange;
  readonly chunk: ChunkData;
  readonly at: number;
  /** All events of the segment up to this seq are read. */
  readonly doneTo: number;
}

/**
 * Finds events of a journal by their heads, while another thread writes it. The index is in memory only, and made at the first
 * search, newest events first. Of an erased event it has only hashes with a random seed, and it does not find its record.
 */
export class SearchIndex {
  readonly #path: string;
  readonly #seed = randomInt(1, 2 ** 32);
  /** In order. */
  #segments: IndexedSegment[] = [];
  #lastSeq = 0;
  #firstSeq = 1;

  /** @param path folder of the journal */
  constructor(path: string) {
    this.#path = path;
  }

  /** True before anything is read. */
  get isEmpty(): boolean {
    return this.#segments.every(({ chunks }) => chunks.length === 0);
  }

  /** True when it has all events. */
  get isComplete(): boolean {
    return this.#segments.every((segment) => this.#isRead(segment));
  }

  /**
   * Reads the newest events, for at most `ms`.
   * @param firstSeq of the oldest event @param lastSeq of the newest committed one
   */
  follow(firstSeq: number, lastSeq: number, ms: number): void {
    this.update(firstSeq, lastSeq);
    const newest = this.#segments.at(-1);
    if (newest === undefined || newest.isTaken) return;
    const limits = { lastSeq, isLast: true, end: performance.now() + ms };
    for (let hasTime = true; hasTime && !this.#isRead(newest); hasTime = performance.now() <= limits.end)
      Object.assign(newest, newest.reader.fill(chunkOf(newest), newest.at, this.#seed, limits));
  }

  /** Adds new segments, and drops those that were removed. */
  update(firstSeq: number, lastSeq: number): void {
    this.#firstSeq = firstSeq;
    this.#lastSeq = lastSeq;
    const names = new Set(segmentsIn(this.#path));
    for (const gone of this.#segments.filter(({ name }) => !names.has(name))) gone.reader.close();
    const known = new Map(this.#segments.map((segment) => [segment.name, segment]));
    this.#segments = [...names].flatMap((name) => known.get(name) ?? this.#open(name) ?? []);
  }

  /** The next range for the other thread to read, newest first; null when there is none. `add` takes the result. */
  next(): UnreadRange | null {
    const segment = this.#segments.findLast((one) => !one.isTaken && !this.#isRead(one));
    if (segment === undefined) return null;
    segment.isTaken = true;
    const { name, at } = segment;
    const [lastSeq, seed] = [this.#lastSeq, this.#seed];
    return {
      name,
      at,
      firstSeq: nextSeqOf(segment),
      lastSeq,
      isLast: segment === this.#segments.at(-1),
      seed,
    };
  }

  /** @throws Error when nothing could be read of a segment that is still there */
  add({ range, chunk, at, doneTo }: ReadRange): void {
    const segment = this.#segments.find(({ name }) => name === range.name);
    // Undefined once it was removed.
    if (segment === undefined) return;
    if (chunk.count === 0 && doneTo === 0) throw new Error(`${range.name} cannot be read`);
    if (chunk.count > 0) segment.chunks.push(new Chunk(chunk));
    Object.assign(segment, { at, doneTo, isTaken: false });
  }

  find(query: SearchQuery): SearchResult {
    const events = this.#eventsOf(query);
    const of = Math.max(0, this.#lastSeq - this.#firstSeq + 1);
    const searched = this.isComplete
      ? of
      : this.#segments.reduce((sum, segment) => sum + this.#countOf(segment), 0);
    return { events, searched, of };
  }

  close(): void {
    for (const { reader } of this.#segments) reader.close();
    this.#segments = [];
  }

  #eventsOf(query: SearchQuery): FoundEvent[] {
    const { after = 0, before = Infinity, limit } = query;
    const wanted = this.#wanted(query);
    const events: FoundEvent[] = [];
    const least = Math.max(after, this.#firstSeq - 1);
    const most = Math.min(before, this.#lastSeq + 1);
    for (const segment of this.#segments.toReversed()) {
      for (const chunk of segment.chunks.toReversed()) {
        for (const seq of chunk.matches(wanted, least, most)) {
          const event = eventOf(segment, chunk, seq, query);
          if (event === null || !matches(event, query)) continue;
          events.push(event);
          if (events.length === limit) return events;
        }
      }
    }
    return events;
  }

  /** Number of the journal's events that are read. */
  #countOf({ chunks, reader: { firstSeq } }: IndexedSegment): number {
    const last = chunks.at(-1);
    if (last === undefined) return 0;
    return Math.max(0, Math.min(last.nextSeq - 1, this.#lastSeq) - Math.max(firstSeq, this.#firstSeq) + 1);
  }

  #isRead(segment: IndexedSegment): boolean {
    const { doneTo } = segment;
    const isLast = segment === this.#segments.at(-1);
    return doneTo >= this.#lastSeq || (isLast ? nextSeqOf(segment) > this.#lastSeq : doneTo === Infinity);
  }

  #open(name: string): IndexedSegment | null {
    const reader = SegmentReader.open(this.#path, name);
    return reader === null
      ? null
      : { name, reader, chunks: [], at: SEGMENT_HEADER, doneTo: 0, isTaken: false };
  }

  #wanted({ id, user, type = '', since, until, without = [] }: SearchQuery): Wanted {
    return {
      id: hashOf(this.#seed, id ?? null),
      user: hashOfUser(this.#seed, user ?? null),
      type,
      without: new Set(without),
      since: since === undefined ? 0 : Math.floor(since / 1000),
      until: until === undefined ? Infinity : Math.floor(until / 1000),
    };
  }
}

/** Reads a range for the index of another thread; nothing of a segment that was removed. */
export function readRange(path: string, range: UnreadRange): ReadRange {
  const chunk = Chunk.from(range.firstSeq);
  const reader = SegmentReader.open(path, range.name);
  if (reader === null) return { range, chunk: chunk.data, at: range.at, doneTo: 0 };
  try {
    const read = reader.fill(chunk, range.at, range.seed, { ...range, end: Infinity });
    return { range, chunk: chunk.data, ...read };
  } finally {
    reader.close();
  }
}

function nextSeqOf({ chunks, reader }: IndexedSegment): number {
  return chunks.at(-1)?.nextSeq ?? reader.firstSeq;
}

/** The chunk for the next event. */
function chunkOf(segment: IndexedSegment): Chunk {
  const last = segment.chunks.at(-1);
  if (last !== undefined && !last.isFull) return last;
  const chunk = Chunk.from(nextSeqOf(segment));
  segment.chunks.push(chunk);
  return chunk;
}

/** The event of a row; null when its record is erased or damaged. */
function eventOf(segment: IndexedSegment, chunk: Chunk, seq: number, query: SearchQuery): FoundEvent | null {
  const found = segment.reader.recordAt(chunk.placeOf(seq), seq);
  if (found === null) return null;
  const { source, id, head } = textsAt(found.bytes, found.pos, found);
  const [type, team, user, clientUser, , handling] = head;
  const { receivedAt, bodyBytes } = found;
  return {
    seq,
    id,
    source,
    type,
    team,
    user,
    clientUser,
    bytes: bodyBytes,
    receivedAt,
    ...(query.journaled === true ? { journaledAt: journaledAt(segment, seq) } : {}),
    ...(handling?.only === undefined ? {} : { only: handling.only }),
    ...(handling?.replayId === undefined ? {} : { replayId: handling.replayId }),
    ...(handling?.trace === undefined ? {} : { trace: handling.trace.traceparent.slice(3, 35) }),
  };
}

/** When an event was committed. Its frame begins at most a full batch before it. */
function journaledAt({ reader, chunks }: IndexedSegment, seq: number): number {
  const before = seq - MOST_EVENTS;
  const from = chunks.findLast(({ data }) => data.firstSeq <= before)?.placeOf(before) ?? 0;
  return (from > 0 ? reader.writtenAt(from, seq) : 0) || reader.writtenAt(SEGMENT_HEADER, seq);
}

/** Compares the texts: two of them may have the same hash. */
function matches(event: FoundEvent, { id, user, type, since, until, without }: SearchQuery): boolean {
  if (event.only === undefined && without?.includes(event.type) === true) return false;
  if (id !== undefined && event.id !== id) return false;
  if (user !== undefined && !isOfUser(event, user)) return false;
  if (type !== undefined && !event.type.startsWith(type)) return false;
  return event.receivedAt >= (since ?? 0) && event.receivedAt < (until ?? Infinity);
}

/** Whether an event is of the user who is looked for. */
function isOfUser({ user, clientUser }: Pick<FoundEvent, 'user' | 'clientUser'>, wanted: string): boolean {
  const id = canonicalId(wanted);
  return [user, clientUser].some((own) => own !== null && canonicalId(own) === id);
}
