import { createSecretKey } from 'node:crypto';
import { recordPieces } from '../../core/archive-record.ts';
import type { Event } from '../../core/event.ts';
import { formatSealed } from '../../core/sealed-record.ts';
import type { BufferPool } from '../../lib/buffer-pool.ts';
import type { OwnedKey } from './key-store.ts';
import { sealLine } from './record.ts';

/** Bytes of a key. */
const KEY = 32;
/** Hex digits of its id. */
const ID = 32;

/** Records for a thread to seal, in buffers that are handed over. Keys are bytes: cloning key objects takes longer. */
export interface SealJob {
  /** The records, each with its line feed. */
  readonly lines: Uint8Array<ArrayBuffer>;
  /** Their keys; overwritten when the job is done or has failed. */
  readonly keys: Uint8Array<ArrayBuffer>;
  /** The ids of the keys, joined. */
  readonly ids: string;
  /** Their times of receipt, milliseconds since the epoch. */
  readonly receivedAt: Float64Array<ArrayBuffer>;
}

/** The buffers of a job that are handed over to the thread. */
export function buffersOf({ lines, keys, receivedAt }: SealJob): ArrayBuffer[] {
  return [lines.buffer, keys.buffer, receivedAt.buffer];
}

/** Most of one job: a few milliseconds of work, so that threads share a batch evenly. */
const RECORDS = 128;
const BYTES = 256 * 1024;
const LINE_FEED = 10;

/** @param keys of the events, in order */
export function* jobsFor(
  events: readonly Event[],
  keys: readonly OwnedKey[],
  buffers: BufferPool,
): Generator<SealJob> {
  for (let from = 0; from < events.length;) {
    let to = from;
    for (let bytes = 0; to < events.length && to - from < RECORDS && bytes < BYTES; to += 1)
      bytes += events[to]?.body.length ?? 0;
    yield jobFor(events.slice(from, to), keys.slice(from, to), buffers);
    from = to;
  }
}

function jobFor(events: readonly Event[], owned: readonly OwnedKey[], buffers: BufferPool): SealJob {
  const keys = new Uint8Array(KEY * events.length);
  for (const [i, { key }] of owned.entries()) keys.set(key, i * KEY);
  const [lines] = recordPieces(events, (bytes) => buffers.take(bytes), Number.POSITIVE_INFINITY);
  return {
    lines: lines as Buffer<ArrayBuffer>,
    keys,
    ids: owned.map(({ id }) => id).join(''),
    receivedAt: Float64Array.from(events, ({ receivedAt }) => receivedAt),
  };
}

/** The sealed records of a job, each with its line feed; in the memory of its lines when there is room. */
export function sealed(job: SealJob): Uint8Array<ArrayBuffer> {
  try {
    const text = sealedText(job);
    const { buffer } = job.lines;
    const hasRoom = text.length <= buffer.byteLength;
    const bytes = Buffer.from(hasRoom ? buffer : new ArrayBuffer(text.length), 0, text.length);
    bytes.write(text, 'latin1');
    return bytes;
  } finally {
    job.keys.fill(0);
  }
}

function sealedText({ lines, keys, ids, receivedAt }: SealJob): string {
  const all = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
  let text = '';
  let from = 0;
  for (const [i, time] of receivedAt.entries()) {
    const end = all.indexOf(LINE_FEED, from);
    const id = ids.slice(i * ID, (i + 1) * ID);
    const key = createSecretKey(keys.subarray(i * KEY, (i + 1) * KEY));
    text += formatSealed(sealLine(id, key, new Date(time).toISOString(), all.subarray(from, end)));
    from = end + 1;
  }
  return text;
}
