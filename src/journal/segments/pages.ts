import { ByteWriter } from '../../lib/byte-writer.ts';
import type { SegmentLog } from './log.ts';
import { bodyAt, rowAt, type EventRow, type Page } from './records.ts';
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
/** Bytes read at once: to the first event from the last known point, and for each event of the page, up to `most`. */
const CHUNK = { base: 64 * 1024, event: 1024, most: 256 * 1024 };

/** The page after a seq; empty at the end. Events after a damaged one are read as usual. */
export function pageAfter(
  log: SegmentLog,
  after: number,
  limits: PageLimits,
  onDamage: (record: DamagedRecord) => void,
): Page {
  const firstSeq = Math.max(after + 1, log.firstSeq);
  const places: number[] = [];
  const likely = Math.min(CHUNK.most, limits.count * CHUNK.event);
  const records = new ByteWriter(likely);
  let bodyBytes = 0;
  const addDamaged = (record: DamagedRecord): void => {
    onDamage(record);
    places.push(-1);
  };
  const missUpTo = (seq: number): void => {
    while (firstSeq + places.length <= seq && places.length < limits.count)
      addDamaged({ seq: firstSeq + places.length, row: null, body: NOTHING });
  };
  const page = (): Page => ({ firstSeq, places, records: records.view() });
  for (const { item, walker } of log.records(firstSeq, CHUNK.base + likely)) {
    missUpTo(item.seq - 1);
    const isFull = places.length > 0 && bodyBytes + item.bodyBytes > limits.bytes;
    if (isFull || places.length >= limits.count) return page();
    const record = walker.whole(item);
    if (walker.isWhole(record)) {
      places.push(records.length);
      records.append(record.bytes.subarray(record.pos, record.pos + record.size));
    } else addDamaged(remainsOf(record));
    bodyBytes += record.bodyBytes;
  }
  missUpTo(log.lastSeq);
  return page();
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
