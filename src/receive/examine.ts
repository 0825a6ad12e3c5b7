import type { IncomingMessage } from 'node:http';
import type { RequestHeaders } from '../core/verifier.ts';
import type { Stages } from './options.ts';
import { type Outcome, problem } from './outcome.ts';

/** Content encodings that are undone before the signature is checked: senders sign what they mean, not how it travels. */
export type Encoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd';

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

const JSON_MEDIA_TYPE = /^\s*(?:application\/json|[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json)\s*(?:;|$)/i;

const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
]);

/** A missing media type passes: the signature says more about a body than its label does. */
function isJson(headers: RequestHeaders): boolean {
  const type = headers['content-type'];
  return type === undefined || type === 'application/json' || JSON_MEDIA_TYPE.test(String(type));
}

/** @returns `null` for an encoding that is not known, or for several on top of each other. */
function encodingOf(headers: RequestHeaders): Encoding | null {
  const encoding = headers['content-encoding'];
  if (encoding === undefined) return 'identity';
  return ENCODINGS.get(String(encoding).trim().toLowerCase()) ?? null;
}

/** The declared length in bytes; `null` when the body comes in chunks. Node has already refused what is no number. */
export function declaredLength(headers: RequestHeaders): number | null {
  const length = headers['content-length'];
  if (length !== undefined) return Number(length);
  return headers['transfer-encoding'] === undefined ? 0 : null;
}
