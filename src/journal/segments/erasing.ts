import type { Owners } from '../../core/erasure.ts';
import { ERASED_MARK, hashesAt, NO_ID, RECORD_HEADER, withoutDigest, type EventHashes } from './format.ts';
import type { SegmentLog, Visited } from './log.ts';
import { bodyAt, rowAt } from './records.ts';
import type { Segment } from './segment.ts';
import type { FoundRecord, Gap } from './walker.ts';

/** An event of a subject, and the erasure requests that cover it. */
export interface Owned {
  readonly seq: number;
  readonly requests: readonly string[];
}

export interface OwnedSlice {
  readonly owned: readonly Owned[];
  /** The last event looked at; null when there are no more. */
  readonly last: number | null;
}

/** Bytes of damage searched at once. */
const PIECE = 2 ** 20;
/** Bytes of a piece that are searched again with the next one: longer than any id. */
const OVERLAP = 4096;

/** The subjects' events among the next `count` ones after a seq. */
export function ownedAfter(log: SegmentLog, owners: Owners, after: number, count: number): OwnedSlice {
  const owned: Owned[] = [];
  let looked = 0;
  for (const found of log.records(after + 1)) {
    const { seq, erased } = found.item;
    const requests = erased ? [] : requestsOf(found, owners);
    if (requests.length > 0) owned.push({ seq, requests });
    looked += 1;
    if (looked === count) return { owned, last: seq };
  }
  return { owned, last: null };
}

/** Reads a body only where the envelope does not say whose the event is: bodies are nearly all of the file. */
function requestsOf({ item, walker }: Visited<FoundRecord>, owners: Owners): readonly string[] {
  const { bytes, pos } = walker.whole(item, RECORD_HEADER + item.identityBytes + item.headBytes);
  try {
    const [id, , , team, user, clientUser, , headers] = rowAt(bytes, pos, item);
    const whose = { team, user, clientUser };
    if (user !== null) return owners.of(whose);
    const whole = walker.whole(item);
    const body = bodyAt(whole.bytes, whole.pos, item);
    return owners.ofEvent({ ...whose, id, headers: { all: headers }, body }, true);
  } catch {
    // A damaged record belongs to every subject that it names.
    const whole = walker.whole(item);
    return owners.named(whole.bytes.subarray(whole.pos + RECORD_HEADER, whole.pos + item.size), null);
  }
}

/**
 * Overwrites events in place, so that no byte of theirs stays in the file: first each is marked as erased, then its content is
 * overwritten. After a crash it is done again.
 */
export function eraseRecords(log: SegmentLog, seqs: readonly number[]): void {
  const first = Math.min(...seqs);
  const last = Math.max(...seqs);
  const wanted = new Set(seqs);
  const found: { readonly segment: Segment; readonly at: number; readonly size: number }[] = [];
  for (const { item, segment } of seqs.length === 0 ? [] : log.records(first)) {
    if (item.seq > last) break;
    if (wanted.has(item.seq)) found.push({ segment, at: item.at, size: item.size });
  }
  const touched = new Set(found.map(({ segment }) => segment));
  for (const { segment, at } of found) segment.overwrite(ERASED_MARK, at);
  for (const segment of touched) segment.sync();
  for (const { segment, at, size } of found)
    segment.overwrite(Buffer.alloc(size - RECORD_HEADER), at + RECORD_HEADER);
  for (const segment of touched) segment.sync();
}

/**
 * In the segment with a seq, or the next one, overwrites damage that names a subject, and the digests of erased events. After a
 * crash it is done again.
 * @param forget called with the hashes of the erased events before their digests are overwritten
 * @returns the first seq of the segment after it; null when there is none
 */
export function eraseGaps(
  log: SegmentLog,
  owners: Owners,
  seq: number,
  forget: (known: readonly EventHashes[]) => void,
): number | null {
  const here = log.holding(seq);
  const known: EventHashes[] = [];
  const headers: { readonly at: number; readonly parts: ReturnType<typeof withoutDigest> }[] = [];
  for (const { item, segment } of log.items(here.header.firstSeq)) {
    if (segment !== here) break;
    if (item.kind === 'record' && item.erased && !item.isEntry) {
      const id = hashesAt(item.bytes, item.pos);
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
