import type { KeyObject } from 'node:crypto';
import { formatRecords } from '../core/archive-record.ts';
import type { Event } from '../core/event.ts';
import { formatSealed } from '../core/sealed-record.ts';
import type { OwnedKey } from './key-store.ts';
import { sealLine } from './record.ts';

/** Records to be sealed in one go, as they are handed to a thread: no more than it takes to seal them. */
export interface SealJob {
  /** The records, each with its line feed, in memory of their own: it is handed over, not copied. */
  readonly lines: Uint8Array<ArrayBuffer>;
  /** How many lines in a row have the same key, and when each was received: milliseconds since the epoch. */
  readonly runs: readonly { readonly id: string; readonly key: KeyObject; readonly receivedAt: number[] }[];
}

/** A few milliseconds of work: enough to be worth a message, and little enough that threads share a batch evenly. */
const RECORDS = 128;
const BYTES = 256 * 1024;
const LINE_FEED = 10;

/** @param keys of the events, in order */
export function* jobsFor(events: readonly Event[], keys: readonly OwnedKey[]): Generator<SealJob> {
  for (let from = 0; from < events.length;) {
    let to = from;
    for (let bytes = 0; to < events.length && to - from < RECORDS && bytes < BYTES; to += 1)
      bytes += events[to]?.body.length ?? 0;
    yield jobFor(events.slice(from, to), keys.slice(from, to));
    from = to;
  }
}

function jobFor(events: readonly Event[], keys: readonly OwnedKey[]): SealJob {
  const runs: SealJob['runs'][number][] = [];
  for (const [i, { receivedAt }] of events.entries()) {
    const owned = keys[i];
    if (owned === undefined) throw new Error('an event has no key');
    const last = runs.at(-1);
    if (last?.id === owned.id) last.receivedAt.push(receivedAt);
    else runs.push({ ...owned, receivedAt: [receivedAt] });
  }
  return { lines: new Uint8Array(formatRecords(events)), runs };
}

/** The sealed records of a job, each with its line feed, in memory of their own. */
export function sealed({ lines, runs }: SealJob): Uint8Array<ArrayBuffer> {
  const all = Buffer.from(lines.buffer);
  let text = '';
  let from = 0;
  for (const { id, key, receivedAt } of runs) {
    for (const time of receivedAt) {
      const end = all.indexOf(LINE_FEED, from);
      text += formatSealed(sealLine(id, key, new Date(time).toISOString(), all.subarray(from, end)));
      from = end + 1;
    }
  }
  const bytes = new Uint8Array(text.length);
  Buffer.from(bytes.buffer).write(text, 'latin1');
  return bytes;
}
