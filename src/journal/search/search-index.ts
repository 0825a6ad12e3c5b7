import { randomInt } from 'node:crypto';
import { canonicalId } from '../../core/named-ids.ts';
import type { FoundEvent, SearchQuery, SearchResult } from '../../core/search.ts';
import { SEGMENT_HEADER } from '../segments/format.ts';
import { textsAt } from '../segments/records.ts';
import { segmentsIn } from '../segments/segment.ts';
import { Chunk, type ChunkData, type Wanted } from './chunk.ts';
import { hashOf, hashOfUser, SegmentReader } from './segment-reader.ts';

/** A segment, and how far it was read. */
interface Source {
  readonly name: string;
  readonly reader: SegmentReader;
  readonly chunks: Chunk[];
  at: number;
  /** All that it has of the events up to this seq was read; what is damaged is not. */
  doneTo: number;
  /** Another thread reads on in it. */
  isTaken: boolean;
}

/** A part of a segment that is still to be read. */
export interface Stretch {
  readonly name: string;
  readonly at: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** The segment is being written. */
  readonly isLast: boolean;
  /** What hashes begin with. */
  readonly seed: number;
}

/** A stretch, or as much of it as fits into one chunk. */
export interface ReadStretch {
  readonly stretch: Stretch;
  readonly chunk: ChunkData;
  readonly at: number;
  /** Up to which seq the segment has no more than this. */
  readonly doneTo: number;
}

/**
 * Finds events of a journal, which another thread writes, by what stands in their heads. The index is in memory only, made
 * when somebody searches, newest events first, and nothing of it outlives the thread: what an erasure removes is nowhere
 * but in hashes under a number that is drawn at each start, and a record that was erased is not found.
 */
export class SearchIndex {
  readonly #path: string;
  readonly #seed = randomInt(1, 2 ** 32);
  /** In order. */
  #sources: Source[] = [];
  #lastSeq = 0;
  #firstSeq = 1;

  /** @param path folder of the journal */
  constructor(path: string) {
    this.#path = path;
  }

  /** Nothing was read yet. */
  get isEmpty(): boolean {
    return this.#sources.every(({ chunks }) => chunks.length === 0);
  }

  /** Whether all up to `lastSeq` is in it. */
  get isComplete(): boolean {
    return this.#sources.every((source) => this.#isRead(source));
  }

  /**
   * Reads what has come at last, for so long at most.
   * @param firstSeq of the oldest event that is kept, and `lastSeq` of the newest that is committed
   */
  follow(firstSeq: number, lastSeq: number, ms: number): void {
    this.look(firstSeq, lastSeq);
    const newest = this.#sources.at(-1);
    if (newest === undefined || newest.isTaken) return;
    const limits = { lastSeq, isLast: true, end: performance.now() + ms };
    for (let hasTime = true; hasTime && !this.#isRead(newest); hasTime = performance.now() <= limits.end)
      Object.assign(newest, newest.reader.fill(chunkOf(newest), newest.at, this.#seed, limits));
  }

  /** Takes up new segments, and lets go of those that were removed. */
  look(firstSeq: number, lastSeq: number): void {
    this.#firstSeq = firstSeq;
    this.#lastSeq = lastSeq;
    const names = new Set(segmentsIn(this.#path));
    for (const gone of this.#sources.filter(({ name }) => !names.has(name))) gone.reader.close();
    const known = new Map(this.#sources.map((source) => [source.name, source]));
    this.#sources = [...names].flatMap((name) => known.get(name) ?? this.#open(name) ?? []);
  }

  /** What another thread reads next, newest first; null when there is nothing. It is `add`ed then. */
  next(): Stretch | null {
    const source = this.#sources.findLast((one) => !one.isTaken && !this.#isRead(one));
    if (source === undefined) return null;
    source.isTaken = true;
    const { name, at } = source;
    const [lastSeq, seed] = [this.#lastSeq, this.#seed];
    return { name, at, firstSeq: nextSeqOf(source), lastSeq, isLast: source === this.#sources.at(-1), seed };
  }

  /** @throws Error when nothing could be read of a segment that is still there */
  add({ stretch, chunk, at, doneTo }: ReadStretch): void {
    const source = this.#sources.find(({ name }) => name === stretch.name);
    // Removed meanwhile.
    if (source === undefined) return;
    if (chunk.count === 0 && doneTo === 0) throw new Error(`${stretch.name} cannot be read`);
    if (chunk.count > 0) source.chunks.push(new Chunk(chunk));
    Object.assign(source, { at, doneTo, isTaken: false });
  }

  find(query: SearchQuery): SearchResult {
    const events = this.#eventsOf(query);
    const of = Math.max(0, this.#lastSeq - this.#firstSeq + 1);
    const searched = this.isComplete
      ? of
      : this.#sources.reduce((sum, source) => sum + this.#countOf(source), 0);
    return { events, searched, of };
  }

  close(): void {
    for (const { reader } of this.#sources) reader.close();
    this.#sources = [];
  }

  #eventsOf(query: SearchQuery): FoundEvent[] {
    const { after = 0, before = Infinity, limit } = query;
    const wanted = this.#wanted(query);
    const events: FoundEvent[] = [];
    const least = Math.max(after, this.#firstSeq - 1);
    const most = Math.min(before, this.#lastSeq + 1);
    for (const source of this.#sources.toReversed()) {
      for (const chunk of source.chunks.toReversed()) {
        for (const seq of chunk.matches(wanted, least, most)) {
          const event = eventOf(source, chunk, seq, query);
          if (event === null || !isMeant(event, query)) continue;
          events.push(event);
          if (events.length === limit) return events;
        }
      }
    }
    return events;
  }

  /** Events of the journal that were read. */
  #countOf({ chunks, reader: { firstSeq } }: Source): number {
    const last = chunks.at(-1);
    if (last === undefined) return 0;
    return Math.max(0, Math.min(last.nextSeq - 1, this.#lastSeq) - Math.max(firstSeq, this.#firstSeq) + 1);
  }

  #isRead(source: Source): boolean {
    const { doneTo } = source;
    const isLast = source === this.#sources.at(-1);
    return doneTo >= this.#lastSeq || (isLast ? nextSeqOf(source) > this.#lastSeq : doneTo === Infinity);
  }

  #open(name: string): Source | null {
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

/** Reads a stretch for an index in another thread; nothing of a segment that was removed meanwhile. */
export function readStretch(path: string, stretch: Stretch): ReadStretch {
  const chunk = Chunk.from(stretch.firstSeq);
  const reader = SegmentReader.open(path, stretch.name);
  if (reader === null) return { stretch, chunk: chunk.data, at: stretch.at, doneTo: 0 };
  try {
    const read = reader.fill(chunk, stretch.at, stretch.seed, { ...stretch, end: Infinity });
    return { stretch, chunk: chunk.data, ...read };
  } finally {
    reader.close();
  }
}

function nextSeqOf({ chunks, reader }: Source): number {
  return chunks.at(-1)?.nextSeq ?? reader.firstSeq;
}

/** The chunk that takes the next event. */
function chunkOf(source: Source): Chunk {
  const last = source.chunks.at(-1);
  if (last !== undefined && !last.isFull) return last;
  const chunk = Chunk.from(nextSeqOf(source));
  source.chunks.push(chunk);
  return chunk;
}

/** The event itself; null when its record is erased or damaged. */
function eventOf(source: Source, chunk: Chunk, seq: number, query: SearchQuery): FoundEvent | null {
  const found = source.reader.recordAt(chunk.placeOf(seq), seq);
  if (found === null) return null;
  const { source: name, id, head } = textsAt(found.bytes, found.pos, found);
  const [type, team, user, clientUser, , handling] = head;
  const { receivedAt, bodyBytes } = found;
  return {
    seq,
    id,
    source: name,
    type,
    team,
    user,
    clientUser,
    bytes: bodyBytes,
    receivedAt,
    ...(query.journaled === true ? { journaledAt: journaledAt(source, seq) } : {}),
    ...(handling?.only === undefined ? {} : { only: handling.only }),
    ...(handling?.replayId === undefined ? {} : { replayId: handling.replayId }),
    ...(handling?.trace === undefined ? {} : { trace: handling.trace.traceparent.slice(3, 35) }),
  };
}

function journaledAt({ reader, chunks }: Source, seq: number): number {
  for (const chunk of chunks.toReversed()) {
    const from = chunk.frameBefore(seq);
    if (from !== null) return reader.writtenAt(from, seq);
  }
  return 0;
}

/** What a chunk cannot tell: two texts may have one hash. */
function isMeant(event: FoundEvent, { id, user, type, since, until, without }: SearchQuery): boolean {
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
