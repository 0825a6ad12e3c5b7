import type { IncomingMessage } from 'node:http';
import type { Reservation } from './budget.ts';
import { type Bytes, type Refusal, CROWDED, OVER_BUDGET, GONE, readBytes } from './bytes.ts';
import {
  type Compression,
  decompress,
  type Decompressed,
  decompressSmall,
  mostOutput,
} from './decompress.ts';
import type { Encoding } from './examine.ts';
import type { Stages } from './options.ts';
import type { Sender, UnverifiedWork } from './unverified.ts';

export type BodyResult = Bytes | Refusal;

/** Decompressed size that is accepted whatever the ratio; a body of about an eighth of it is decompressed at once. */
const SMALL_BYTES = 64 * 1024;
const LIKELY_RATIO = 8;

/** Asks whether the work for a costly delivery, which is not verified yet, may begin. */
export interface Gate {
  readonly unverified: UnverifiedWork;
  readonly sender: Sender;
  /** True when the delivery was answered while it waited. */
  isEnded(): boolean;
}

/**
 * Reads a request's body and decompresses it. Never has more than `maxBodyBytes` of either form. The decompressed size is
 * limited by the number of compressed bytes: the body is not verified yet, and a few bytes can become many.
 * @param length declared length in bytes; null if the body comes in chunks
 * @param memory the caller releases it
 * @param gate null for a body without encoding, of a delivery that is not costly
 * @param settle called once; or `fail`, with an unexpected error
 */
export function readBody(
  request: IncomingMessage,
  encoding: Encoding,
  length: number | null,
  limits: Stages['limits'],
  memory: Reservation,
  gate: Gate | null,
  fail: (error: unknown) => void,
  settle: (result: BodyResult) => void,
): void {
  const plainLength = encoding === 'identity' ? length : null;
  readBytes(request, plainLength, limits.maxBodyBytes, memory, (read) => {
    if (gate === null || !read.ok) return settle(read);
    gate.unverified.ask(gate.sender, (isAllowed) => {
      if (!isAllowed || gate.isEnded()) settle(isAllowed ? GONE : OVER_BUDGET);
      else if (encoding === 'identity') settle(read);
      else decompressBody(encoding, read.body, limits, memory, gate).then(settle, fail);
    });
  });
}

async function decompressBody(
  encoding: Compression,
  bytes: Buffer,
  { maxBodyBytes, maxDecompressionRatio }: Stages['limits'],
  memory: Reservation,
  { unverified, sender, isEnded }: Gate,
): Promise<BodyResult> {
  const most = Math.min(maxBodyBytes, Math.max(SMALL_BYTES, bytes.length * maxDecompressionRatio));
  if (bytes.length * LIKELY_RATIO <= SMALL_BYTES) {
    const limit = Math.min(most, SMALL_BYTES);
    const done = decompressSmall(bytes, encoding, limit);
    memory.work += workOf(done, encoding, limit);
    if (done.ok) return memory.take(done.body.length) ? done : CROWDED;
    if (!done.tooLarge || limit === most) return refusalFor(done, encoding, limit, maxBodyBytes);
  }
  const result = await unverified.run(sender, async (): Promise<BodyResult> => {
    if (isEnded()) return GONE;
    if (!memory.take(most)) return CROWDED;
    const done = await decompress(bytes, encoding, most);
    memory.work += workOf(done, encoding, most);
    memory.give(done.ok ? most - done.body.length : most);
    return done.ok ? done : refusalFor(done, encoding, most, maxBodyBytes);
  });
  return result ?? OVER_BUDGET;
}

function workOf(done: Decompressed, encoding: Compression, limit: number): number {
  return done.ok ? done.body.length : mostOutput(encoding, limit);
}

function refusalFor(
  { tooLarge }: Extract<Decompressed, { ok: false }>,
  encoding: Compression,
  limit: number,
  maxBodyBytes: number,
): Refusal {
  if (!tooLarge) return { ok: false, code: 'body_malformed', detail: `the body is not ${encoding}` };
  if (limit < maxBodyBytes) {
    const detail = `more than ${limit} bytes when decompressed; see server.maxDecompressionRatio`;
    return { ok: false, code: 'body_ratio_exceeded', detail };
  }
  return { ok: false, code: 'body_too_large', detail: `more than ${limit} bytes when decompressed` };
}
