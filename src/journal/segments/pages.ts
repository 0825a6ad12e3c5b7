import type { SegmentLog } from './log.ts';
import { bodyAt, rowAt, type EventRow, type Page } from './records.ts';
import type { Segment } from './segment.ts';
import type { FoundRecord } from './walker.ts';

export interface PageLimits {
  readonly count: number;
  /** Of all bodies together; the first event is always in the page. */
  readonly bytes: number;
}

/** A damaged record: `row` and `body` are what can still be read of it. */
export interface DamagedRecord {
  readonly seq: number;
  readonly row: EventRow | null;
  readonly body: Buffer;
}

const NOTHING = Buffer.alloc(0);
/** Bytes read at once. */
const READ = { least: 64 * 1024, most: 2 * 1024 * 1024 };

/**
 * The page after a seq; empty at the end. It can be shorter than the limits allow, because it ends with what was read at once.
 * Events after a damaged one are read as usual.
 */
export function pageAfter(
  log: SegmentLog,
  after: number,
  limits: PageLimits,
  onDamage: (record: DamagedRecord) => void,
): Page {
  const page = new PageBuilder(Math.max(after + 1, log.firstSeq), limits, onDamage);
  for (const { item, walker } of log.records(page.nextSeq, (segment) => bytesToRead(log, segment, limits))) {
    if (item.seq < page.nextSeq) continue;
    page.missUpTo(item.seq - 1);
    if (!page.hasRoom(item)) return page;
    const record = walker.whole(item);
    if (!page.add(record, walker.isWhole(record)) || !walker.isNear()) return page;
  }
  page.missUpTo(log.lastSeq);
  return page;
}

class PageBuilder implements Page {
  readonly firstSeq: number;
  readonly places: number[] = [];
  records: Buffer = Buffer.alloc(0);
  readonly #limits: PageLimits;
  readonly #onDamage: (record: DamagedRecord) => void;
  #bytes = 0;

  constructor(firstSeq: number, limits: PageLimits, onDamage: (record: DamagedRecord) => void) {
    this.firstSeq = firstSeq;
    this.#limits = limits;
    this.#onDamage = onDamage;
  }

  get nextSeq(): number {
    return this.firstSeq + this.places.length;
  }

  /** Counts the seqs up to this one as damaged, without content. */
  missUpTo(seq: number): void {
    while (this.nextSeq <= seq && this.places.length < this.#limits.count)
      this.#damaged({ seq: this.nextSeq, row: null, body: NOTHING });
  }

  hasRoom({ bodyBytes, bytes, pos, size }: FoundRecord): boolean {
    if (this.places.length >= this.#limits.count) return false;
    if (this.places.length > 0 && this.#bytes + bodyBytes > this.#limits.bytes) return false;
    // All records of a page are in one window.
    return this.records.length === 0 || (bytes === this.records && pos + size <= bytes.length);
  }

  /** @returns false when the page is full */
  add(record: FoundRecord, isWhole: boolean): boolean {
    if (isWhole) {
      this.records = record.bytes;
      this.places.push(record.pos);
    } else this.#damaged(remainsOf(record));
    this.#bytes += record.bodyBytes;
    return this.places.length < this.#limits.count;
  }

  #damaged(record: DamagedRecord): void {
    this.#onDamage(record);
    this.places.push(-1);
  }
}

/** Bytes that the page probably needs, and those between the known point and its beginning. */
function bytesToRead(log: SegmentLog, segment: Segment, { count, bytes }: PageLimits): number {
  const { firstSeq } = segment.header;
  const next = log.segments[log.segments.indexOf(segment) + 1]?.header.firstSeq ?? log.lastSeq + 1;
  const average = segment.size / Math.max(1, next - firstSeq);
  const wanted = Math.min(count * average * 1.25, bytes * 2) + READ.least;
  return Math.min(READ.most, Math.ceil(wanted));
}

function remainsOf(record: FoundRecord): DamagedRecord {
  const { seq, bytes, pos } = record;
  const body = Buffer.from(bodyAt(bytes, pos, record));
  try {
    return { seq, row: rowAt(bytes, pos, record), body };
  } catch {
    return { seq, row: null, body };
  }
}

/** One event as a row of the tables and its body; null when it is damaged, erased or missing. */
export function rowOf(
  log: SegmentLog,
  seq: number,
): { readonly row: EventRow; readonly body: Buffer } | null {
  const found = log.records(seq).next().value;
  if (found === undefined || found.item.seq !== seq || !found.walker.isWhole(found.item)) return null;
  const record = found.walker.whole(found.item);
  if (record.erased) return null;
  const { bytes, pos } = record;
  return { row: rowAt(bytes, pos, record), body: Buffer.from(bodyAt(bytes, pos, record)) };
}
