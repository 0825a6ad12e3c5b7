import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { canonicalId } from '../../core/named-ids.ts';
import { isOfUser, type FoundEvent, type SearchQuery, type SearchResult } from '../../core/search.ts';
import { decodeSegmentHeader, RECORD_HEADER, SEGMENT_HEADER } from '../segments/format.ts';
import { textsAt } from '../segments/records.ts';
import { segmentsIn } from '../segments/segment.ts';
import { type FoundRecord, readFully, Walker } from '../segments/walker.ts';
import { Columns, type Row, TypeNumbers, type Wanted } from './columns.ts';

/** A segment that is open for reading beside the thread that writes it, and how far it was read. */
interface Source {
  readonly name: string;
  readonly fd: number;
  readonly salt: number;
  readonly columns: Columns;
  at: number;
  /** All that it has of the events up to this seq was read; what is damaged is not. */
  doneTo: number;
}

const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
/** Items between two looks at the clock. */
const AT_ONCE = 256;

/**
 * Finds events of a journal, which another thread writes, by what stands in their heads. The index is in memory only, made
 * when somebody searches, newest events first, and nothing of it outlives the thread: what an erasure removes is nowhere
 * but in hashes under a number that is drawn at each start, and a record that was erased is not found.
 */
export class SearchIndex {
  readonly #path: string;
  readonly #seed = randomInt(1, 2 ** 32);
  readonly #types = new TypeNumbers();
  /** In order. */
  #sources: Source[] = [];
  #lastSeq = 0;
  #firstSeq = 1;

  /** @param path folder of the journal */
  constructor(path: string) {
    this.#path = path;
  }

  /** Whether all up to `lastSeq` is in it. */
  get isComplete(): boolean {
    const newest = this.#sources.at(-1);
    return this.#sources.every((source) => this.#isRead(source, source === newest));
  }

  #isRead({ doneTo, columns }: Source, isLast: boolean): boolean {
    return doneTo >= this.#lastSeq || (isLast ? columns.nextSeq > this.#lastSeq : doneTo === Infinity);
  }

  /**
   * Reads on for so long at most, newest segment first.
   * @param firstSeq of the oldest event that is kept, and `lastSeq` of the newest that is committed
   */
  build(firstSeq: number, lastSeq: number, ms: number): void {
    this.#firstSeq = firstSeq;
    this.#lastSeq = lastSeq;
    this.#look();
    const end = performance.now() + ms;
    const newest = this.#sources.at(-1);
    for (const source of this.#sources.toReversed()) {
      const isLast = source === newest;
      for (let hasMore = !this.#isRead(source, isLast); hasMore;) {
        hasMore = this.#read(source, isLast);
        if (!hasMore) source.doneTo = isLast ? this.#lastSeq : Infinity;
        if (performance.now() > end) return;
        hasMore &&= !this.#isRead(source, isLast);
      }
    }
  }

  find(query: SearchQuery): SearchResult {
    const { after = 0, before = Infinity, limit } = query;
    const wanted = this.#wanted(query);
    const events: FoundEvent[] = [];
    const least = Math.max(after, this.#firstSeq - 1);
    for (const source of this.#sources.toReversed()) {
      for (const seq of source.columns.matches(wanted, least, Math.min(before, this.#lastSeq + 1))) {
        const event = this.#eventOf(source, seq);
        if (event === null || !isMeant(event, query)) continue;
        events.push(event);
        if (events.length === limit) break;
      }
      if (events.length === limit) break;
    }
    const kept = this.#sources.map(({ columns: { firstSeq, nextSeq } }) =>
      Math.max(0, Math.min(nextSeq - 1, this.#lastSeq) - Math.max(firstSeq, this.#firstSeq) + 1),
    );
    const of = Math.max(0, this.#lastSeq - this.#firstSeq + 1);
    const searched = this.isComplete ? of : kept.reduce((sum, count) => sum + count, 0);
    return { events, searched, of };
  }

  close(): void {
    for (const { fd } of this.#sources) closeSync(fd);
    this.#sources = [];
  }

  /** Takes up new segments, and lets go of those that were removed. */
  #look(): void {
    const names = new Set(segmentsIn(this.#path));
    for (const gone of this.#sources.filter(({ name }) => !names.has(name))) closeSync(gone.fd);
    const known = new Map(this.#sources.map((source) => [source.name, source]));
    this.#sources = [...names].flatMap((name) => known.get(name) ?? this.#open(name) ?? []);
  }

  /** Null for one that is removed at this moment, or whose header is damaged. */
  #open(name: string): Source | null {
    let fd: number;
    try {
      fd = openSync(join(this.#path, name), constants.O_RDONLY | NO_FOLLOW);
    } catch {
      return null;
    }
    const bytes = Buffer.alloc(SEGMENT_HEADER);
    const header = readFully(fd, bytes, 0) < SEGMENT_HEADER ? null : decodeSegmentHeader(bytes);
    if (header === null) {
      closeSync(fd);
      return null;
    }
    const { salt, firstSeq } = header;
    return { name, fd, salt, columns: new Columns(firstSeq), at: SEGMENT_HEADER, doneTo: 0 };
  }

  /** Reads a little of a segment. @returns false at its end, as far as it is committed */
  #read(source: Source, isLast: boolean): boolean {
    const walker = this.#walker(source, source.at);
    for (let n = 0; n < AT_ONCE || walker.isNear(); n += 1) {
      // What lies behind the last commit is being written right now, and no damage.
      const isCommitted = !isLast || source.columns.nextSeq <= this.#lastSeq;
      const item = isCommitted ? walker.next() : walker.sound();
      if (item === null) return false;
      if (item.kind === 'frame') source.columns.noteFrame(item.firstSeq, item.at);
      if (item.kind === 'record') {
        if (item.seq > this.#lastSeq) return false;
        source.columns.add(item.seq, this.#rowOf(item, walker));
      }
      source.at = walker.at;
    }
    return true;
  }

  #walker({ fd, salt }: Source, at: number): Walker {
    return new Walker({ fd, salt, end: fstatSync(fd).size, at, upto: 0 });
  }

  #rowOf(item: FoundRecord, walker: Walker): Row {
    const second = Math.floor(item.receivedAt / 1000);
    const nobody = { id: 0, user: 0, clientUser: 0, type: this.#types.of(''), second };
    if (item.erased) return nobody;
    const { bytes, pos } = walker.whole(item, RECORD_HEADER + item.identityBytes + item.headBytes);
    try {
      const { id, head } = textsAt(bytes, pos, item);
      const [type, , user, clientUser, , handling] = head;
      return {
        id: this.#hash(id),
        user: this.#hashOf(user),
        clientUser: this.#hashOf(clientUser),
        type: this.#types.of(type, handling?.only !== undefined),
        second,
      };
    } catch {
      return nobody;
    }
  }

  /** The event itself; null when its record is erased or damaged. */
  #eventOf(source: Source, seq: number): FoundEvent | null {
    const from = source.columns.placeBefore(seq);
    if (from === null) return null;
    const walker = this.#walker(source, from);
    let journaledAt = 0;
    for (let item = walker.next(); item !== null; item = walker.next()) {
      if (item.kind === 'frame') journaledAt = item.writtenAt;
      if (item.kind !== 'record' || item.seq < seq) continue;
      if (item.seq > seq || item.erased || !walker.isWhole(item)) return null;
      const { bytes, pos } = walker.whole(item);
      const { source: name, id, head } = textsAt(bytes, pos, item);
      const [type, team, user, clientUser, , handling] = head;
      const { receivedAt, bodyBytes } = item;
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
        journaledAt,
        ...(handling?.only === undefined ? {} : { only: handling.only }),
        ...(handling?.replayId === undefined ? {} : { replayId: handling.replayId }),
        ...(handling?.trace === undefined ? {} : { trace: handling.trace.traceparent.slice(3, 35) }),
      };
    }
    return null;
  }

  #wanted({ id, user, type = '', since, until, without = [] }: SearchQuery): Wanted {
    return {
      id: this.#hash(id ?? null),
      user: this.#hashOf(user ?? null),
      types: type === '' && without.length === 0 ? null : this.#types.wanted(type, without),
      since: since === undefined ? 0 : Math.floor(since / 1000),
      until: until === undefined ? Infinity : Math.floor(until / 1000),
    };
  }

  #hashOf(user: string | null): number {
    return this.#hash(user === null ? null : canonicalId(user));
  }

  /** 0 for nothing, and never for something. */
  #hash(text: string | null): number {
    if (text === null) return 0;
    let hash = this.#seed;
    for (let at = 0; at < text.length; at += 1)
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193) ^ (hash >>> 15);
    return hash >>> 0 || 1;
  }
}

/** What the columns cannot tell: two texts may have one hash. */
function isMeant(event: FoundEvent, { id, user, type, since, until, without }: SearchQuery): boolean {
  if (event.only === undefined && without?.includes(event.type) === true) return false;
  if (id !== undefined && event.id !== id) return false;
  if (user !== undefined && !isOfUser(event, user)) return false;
  if (type !== undefined && !event.type.startsWith(type)) return false;
  return event.receivedAt >= (since ?? 0) && event.receivedAt < (until ?? Infinity);
}
