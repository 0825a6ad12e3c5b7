import type { IncomingMessage } from 'node:http';
import type { Share } from './budget.ts';
import { type Bytes, type Refusal, CROWDED, FORGERIES, GONE, readBytes } from './bytes.ts';
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

/** A compressed body may become this large whatever its ratio, and one of a tenth of that goes straight through. */
const SMALL_BYTES = 64 * 1024;
const LIKELY_RATIO = 8;
/** How a costly delivery asks whether what is done for it before it is verified may begin. */
export interface Gate {
  readonly unverified: UnverifiedWork;
  readonly sender: Sender;
  /** Whether it was answered while it waited. */
  isEnded(): boolean;
}

/**
 * Reads a request's body and undoes its encoding. Never holds more than `maxBodyBytes` of either form. Nobody has verified
 * it yet, and a few bytes can ask for the whole limit, so what they may become is bound by their number.
 * @param length declared length in bytes, `null` if it comes in chunks.
 * @param share counts what is held; the caller releases it.
 * @param gate null for a body without encoding, of a delivery that is not costly
 * @param settle called once, or `fail` is for what nobody expects
 */
export function readBody(
  request: IncomingMessage,
  encoding: Encoding,
  length: number | null,
  limits: Stages['limits'],
  share: Share,
  gate: Gate | null,
  fail: (error: unknown) => void,
  settle: (result: BodyResult) => void,
): void {
  const plainLength = encoding === 'identity' ? length : null;
  readBytes(request, plainLength, limits.maxBodyBytes, share, (read) => {
    if (gate === null || !read.ok) return settle(read);
    gate.unverified.ask(gate.sender, (isAllowed) => {
      if (!isAllowed || gate.isEnded()) settle(isAllowed ? GONE : FORGERIES);
      else if (encoding === 'identity') settle(read);
      else undo(encoding, read.body, limits, share, gate).then(settle, fail);
    });
  });
}

async function undo(
  encoding: Compression,
  bytes: Buffer,
  { maxBodyBytes, maxDecompressionRatio }: Stages['limits'],
  share: Share,
  { unverified, sender, isEnded }: Gate,
): Promise<BodyResult> {
  const most = Math.min(maxBodyBytes, Math.max(SMALL_BYTES, bytes.length * maxDecompressionRatio));
  if (bytes.length * LIKELY_RATIO <= SMALL_BYTES) {
    const limit = Math.min(most, SMALL_BYTES);
    const done = decompressSmall(bytes, encoding, limit);
    share.work += workOf(done, encoding, limit);
    if (done.ok) return share.take(done.body.length) ? done : CROWDED;
    if (!done.tooLarge || limit === most) return refusalFor(done, encoding, limit, maxBodyBytes);
  }
  const result = await unverified.run(sender, async (): Promise<BodyResult> => {
    if (isEnded()) return GONE;
    if (!share.take(most)) return CROWDED;
    const done = await decompress(bytes, encoding, most);
    share.work += workOf(done, encoding, most);
    share.give(done.ok ? most - done.body.length : most);
    return done.ok ? done : refusalFor(done, encoding, most, maxBodyBytes);
  });
  return result ?? FORGERIES;
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
