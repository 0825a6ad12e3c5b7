import type { IncomingMessage } from 'node:http';
import type { RequestHeaders } from '../core/verifier.ts';
import type { Stages } from './options.ts';
import { type Outcome, problem } from './outcome.ts';

/** Content encodings, which are decoded before the signature is checked: senders sign the decoded body. */
export type Encoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd';

/** The headers of a delivery that they do not refuse. */
export interface Examined {
  /** Wall clock, milliseconds. */
  readonly receivedAt: number;
  readonly encoding: Encoding;
  /** Declared length in bytes; null when the body comes in chunks. */
  readonly length: number | null;
  /** Of the verifier's precheck. */
  readonly tries: number;
  /** Whether refusing it after its body costs much more than refusing it now. */
  readonly costly: boolean;
}

/** Larger bodies, before decompression, cost much more to read and hash than headers. */
const SMALL_BODY = 64 * 1024;

/** Checks the headers of a delivery. @returns the outcome of a refused one */
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
  const receivedAt = stages.clock.now();
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

/** A missing media type is accepted: the signature says more about a body. */
function isJson(headers: RequestHeaders): boolean {
  const type = headers['content-type'];
  return type === undefined || type === 'application/json' || JSON_MEDIA_TYPE.test(String(type));
}

/** Null for an unknown encoding, or for several. */
function encodingOf(headers: RequestHeaders): Encoding | null {
  const encoding = headers['content-encoding'];
  if (encoding === undefined) return 'identity';
  return ENCODINGS.get(String(encoding).trim().toLowerCase()) ?? null;
}

/** The declared length in bytes; null when the body comes in chunks. Node has refused a text that is no number. */
export function declaredLength(headers: RequestHeaders): number | null {
  const length = headers['content-length'];
  if (length !== undefined) return Number(length);
  return headers['transfer-encoding'] === undefined ? 0 : null;
}
