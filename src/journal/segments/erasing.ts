import type { Owners } from '../../core/erasure.ts';
import { idOf, NO_ID, RECORD_HEADER, erasedMark, withoutDigest, type KnownBy } from './format.ts';
import type { SegmentLog, Walked } from './log.ts';
import { bodyAt, rowAt } from './records.ts';
import type { Segment } from './segment.ts';
import type { FoundRecord, Gap } from './walker.ts';

/** An event of a subject, and the requests it falls under. */
export interface Owned {
  readonly seq: number;
  readonly requests: readonly string[];
}

export interface OwnedSlice {
  readonly owned: readonly Owned[];
  /** The last event that was looked at; null when there were no more. */
  readonly last: number | null;
}

/** Bytes in which no record can be found are looked through so many at a time. */
const PIECE = 2 ** 20;
/** Of one piece that are looked at again with the next: no name is longer. */
const OVERLAP = 4096;

/** Whose the events after a seq are. @param count looks at so many at most */
export function ownedAfter(log: SegmentLog, owners: Owners, after: number, count: number): OwnedSlice {
  const owned: Owned[] = [];
  let last: number | null = null;
  let looked = 0;
  for (const found of log.records(after + 1)) {
    if (looked === count) return { owned, last };
    const { seq, erased } = found.item;
    const requests = erased ? [] : requestsOf(found, owners);
    if (requests.length > 0) owned.push({ seq, requests });
    last = seq;
    looked += 1;
  }
  return { owned, last: looked < count ? null : last };
}

/** A body is read only where the envelope does not say whose it is: bodies are nearly all of the file. */
function requestsOf({ item, walker }: Walked<FoundRecord>, owners: Owners): readonly string[] {
  const { bytes, pos } = walker.whole(item, RECORD_HEADER + item.identityBytes + item.headBytes);
  try {
    const [id, , , team, user, clientUser, , headers] = rowAt(bytes, pos, item);
    const whose = { team, user, clientUser };
    if (user !== null) return owners.of(whose);
    const whole = walker.whole(item);
    const body = bodyAt(whole.bytes, whole.pos, item);
    return owners.ofEvent({ ...whose, id, headers: { all: headers }, body }, true);
  } catch {
    // Not what was written: it is of whom it names.
    const whole = walker.whole(item);
    return owners.named(whole.bytes.subarray(whole.pos + RECORD_HEADER, whole.pos + item.size), null);
  }
}

/**
 * Writes over events where they stand, so that no byte of theirs stays in the file: first each says that it is erased, then
 * its content goes. It may be ended anywhere, and is then done again.
 */
export function eraseRecords(log: SegmentLog, seqs: readonly number[]): void {
  const first = Math.min(...seqs);
  const last = Math.max(...seqs);
  const wanted = new Set(seqs);
  const found: { readonly segment: Segment; readonly at: number; readonly size: number }[] = [];
  if (seqs.length > 0)
    for (const { item, segment } of log.records(first)) {
      if (item.seq > last) break;
      if (wanted.has(item.seq)) found.push({ segment, at: item.at, size: item.size });
    }
  const touched = new Set(found.map(({ segment }) => segment));
  for (const { segment, at } of found) segment.overwrite(erasedMark(), at);
  for (const segment of touched) segment.sync();
  for (const { segment, at, size } of found)
    segment.overwrite(Buffer.alloc(size - RECORD_HEADER), at + RECORD_HEADER);
  for (const segment of touched) segment.sync();
}

/**
 * Writes over bytes in which no event can be found any more, where they name a subject, and over what
 * stands in headers for the bodies of erased events: in the segment that holds a seq, or the next one. It may be ended anywhere, and is then done again.
 * @param forget told of these before they are written over
 * @returns the first seq of the segment after it; null when there is none
 */
export function eraseGaps(
  log: SegmentLog,
  owners: Owners,
  seq: number,
  forget: (known: readonly KnownBy[]) => void,
): number | null {
  const here = log.holding(seq);
  const known: KnownBy[] = [];
  const headers: { readonly at: number; readonly parts: ReturnType<typeof withoutDigest> }[] = [];
  for (const { item, segment } of log.items(here.header.firstSeq)) {
    if (segment !== here) break;
    if (item.kind === 'record' && item.erased && !item.isEntry) {
      const id = idOf(item.bytes, item.pos);
      const isKnown = id.digest !== NO_ID.digest;
      if (isKnown) known.push(id);
      if (isKnown || item.bytes.readUInt32LE(item.pos + 4) !== 0)
        headers.push({ at: item.at, parts: withoutDigest(item.bytes, item.pos, log.salt) });
    }
    if (item.kind !== 'gap' || !names(segment, item, owners)) continue;
    for (let at = item.at; at < item.at + item.size; at += PIECE)
      segment.overwrite(Buffer.alloc(Math.min(PIECE, item.at + item.size - at)), at);
    segment.sync();
  }
  if (known.length > 0) forget(known);
  for (const step of headers[0]?.parts.keys() ?? []) {
    for (const { at, parts } of headers) {
      const [within, bytes] = parts[step] as (typeof parts)[number];
      here.overwrite(bytes, at + within);
    }
    here.sync();
  }
  return log.segments[log.segments.indexOf(here) + 1]?.header.firstSeq ?? null;
}

function names(segment: Segment, { at, size }: Gap, owners: Owners): boolean {
  for (let from = at; from < at + size; from += PIECE) {
    const bytes = segment.read(from, Math.min(PIECE + OVERLAP, at + size - from));
    if (owners.named(bytes, null).length > 0) return true;
  }
  return false;
}
