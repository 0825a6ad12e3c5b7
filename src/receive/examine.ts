import type { IncomingMessage } from 'node:http';
import { type Encoding, declaredLength, encodingOf, isJson } from './content.ts';
import type { Stages } from './stages.ts';
import { type Outcome, problem } from './outcome.ts';

/** What the headers of a delivery say that may be genuine. */
export interface Examined {
  /** Wall clock at which they came, milliseconds. */
  readonly receivedAt: number;
  readonly encoding: Encoding;
  /** Declared length in bytes; `null` when the body comes in chunks. */
  readonly length: number | null;
  /** As the verifier's precheck says. */
  readonly tries: number;
  /** Whether refusing it after its body would cost much more than refusing it now. */
  readonly costly: boolean;
}

/** Larger bodies, as they travel, cost much more to read and hash than their headers. */
const SMALL_BODY = 64 * 1024;

/** Looks at all that can be said of a delivery before its body is read. @returns the outcome when that is a refusal */
export function examine({ headers }: IncomingMessage, stages: Stages): Examined | Outcome {
  if (stages.isBacklogFull()) return problem('backlog_full', 'try again later');
  if (!isJson(headers)) return problem('media_type_unsupported', 'Content-Type must be application/json');
  const encoding = encodingOf(headers);
  if (encoding === null) {
    return problem(
      'encoding_unsupported',
      'Content-Encoding must be one of gzip, deflate, br, zstd, identity',
    );
  }
  const length = declaredLength(headers);
  if (length !== null && length > stages.limits.maxBodyBytes) {
    return problem('body_too_large', `more than ${stages.limits.maxBodyBytes} bytes`);
  }
  const receivedAt = stages.now();
  const precheck = stages.verifier.precheck?.(headers, receivedAt);
  if (precheck?.ok === false) return problem(precheck.code, precheck.detail);
  const tries = precheck?.tries ?? 0;
  const costly = encoding !== 'identity' || length === null || length > SMALL_BODY || tries > 0;
  return { receivedAt, encoding, length, tries, costly };
}
