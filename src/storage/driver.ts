import { StorageError, type StoredObject, type StorageFault } from '../core/storage.ts';

/**
 * The operations of one vendor's store, one request each (except `upload`). Keys have the store's prefix. A driver never retries;
 * `RemoteStore` builds the contract of storage on it. Every call ends when its signal aborts.
 */
export interface Driver {
  /** Null when there is no such key. @throws `no_place` when the bucket is not there */
  head(key: string, signal: AbortSignal): Promise<FoundObject | null>;
  /** Reads from an offset on. When the connection breaks, the body ends early, with an error or without one. */
  read(key: string, from: ReadRange, signal: AbortSignal): Promise<Reading>;
  /** In the order of the keys' UTF-8 bytes. @param after `next` of the page before */
  page(prefix: string, after: string | null, signal: AbortSignal): Promise<Page>;
  /** Writes a small object. @returns its version @throws an `isUnmet` error when the condition does not hold */
  put(key: string, body: WholeBody, condition: Condition, signal: AbortSignal): Promise<string>;
  /** Begins to write a large object. @throws as `put`; or its upload does */
  upload(key: string, body: BodyFacts, condition: Condition, signal: AbortSignal): Promise<Upload>;
  /** @throws `changed` when there is another version; it may throw `missing` when there is none */
  remove(key: string, version: string | null, signal: AbortSignal): Promise<void>;
  /** Old versions and copies that the store keeps of a key. */
  remains(key: string, signal: AbortSignal): Promise<readonly Remains[]>;
  /** A version that no object ever has. */
  readonly noVersion: string;
  /** The meaning of an error of any of these calls. */
  faultOf(error: unknown): StorageError;
  close(): void;
}

/** The write must find this version, or no object. */
export type Condition = { readonly version: string | null };

export interface FoundObject extends StoredObject {
  /** As written with it, lower-case hex; null when another program wrote it. */
  readonly sha256: string | null;
}

export interface ReadRange {
  readonly offset: number;
  /** Null for any. */
  readonly version: string | null;
}

export interface Reading {
  readonly version: string;
  /** Size of the whole object. */
  readonly bytes: number;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Page {
  readonly objects: readonly StoredObject[];
  /** Null on the last page. */
  readonly next: string | null;
}

export interface BodyFacts {
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

export interface WholeBody extends BodyFacts {
  readonly bytes: Buffer;
}

/** An object that is being written in parts. It is not visible before `finish`. */
export interface Upload {
  /** How many parts may be in flight at once. */
  readonly parallel: number;
  /** All parts but the last have the same size. May be called again for the same part. @param number from 0 on */
  part(number: number, offset: number, bytes: Buffer, signal: AbortSignal): Promise<void>;
  /** As `put`. @throws UploadGone */
  finish(signal: AbortSignal): Promise<string>;
  /** Removes the parts, if there are any. */
  abandon(signal: AbortSignal): Promise<void>;
}

/** The store does not know the upload: it was finished and the answer lost, or another program has ended it. */
export class UploadGone extends StorageError {
  constructor(cause: unknown) {
    super('changed', 'the store does not know the upload any more', { cause });
  }
}

/** Whether an error says that the condition of a write does not hold. */
export function isUnmet({ version }: Condition, error: unknown): boolean {
  if (!(error instanceof StorageError) || error instanceof UploadGone) return false;
  return error.fault === 'changed' || (error.fault === 'missing' && version !== null);
}

/** An old version or copy of an object. */
export interface Remains {
  /** For people: `version 7 of 2026-11-21`. */
  readonly name: string;
  /** It hides the others, and must be removed after them. */
  readonly isMarker?: boolean;
  /** @throws what keeps it */
  remove(signal: AbortSignal): Promise<void>;
}

/** Variables by name; vendors' own tools read them too. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Name of the metadata with an object's hash. */
export const SHA256 = 'sha256';

/** A member that an answer must have. @throws StorageError unreachable for an answer without it, which is not the store's */
export function required<T>(value: T | undefined, what: string): T {
  if (value === undefined || value === '') throw new StorageError('unreachable', `an answer without ${what}`);
  return value;
}

/**
 * An object as an answer describes it.
 * @throws StorageError for an answer that leaves something out: an object of 0 bytes would be empty, and one of 1970 a leftover
 */
export function objectOf(
  key: string | undefined,
  size: number | undefined,
  version: string | undefined,
  modified: Date | undefined,
): StoredObject {
  return {
    key: required(key, 'a key'),
    bytes: required(size, 'a length'),
    version: required(version, 'a version'),
    modifiedAt: required(modified, 'a time of change').getTime(),
  };
}

/** Size of the whole object in a Content-Range header; undefined without one. */
export function totalOf(contentRange: string | undefined): number | undefined {
  const total = /\/(\d+)$/.exec(contentRange ?? '')?.[1];
  return total === undefined ? undefined : Number(total);
}

/** The empty reading from an offset at or behind the end of an object. @throws the store's error when there is no such version */
export async function readNothing(
  driver: Pick<Driver, 'head'>,
  { key, version }: { readonly key: string; readonly version: string | null },
  error: unknown,
  signal: AbortSignal,
): Promise<Reading> {
  const found = await driver.head(key, signal);
  if (found === null || (version !== null && found.version !== version)) throw error;
  return { version: found.version, bytes: found.bytes, body: nothing() };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Stores answer a removal with 204. After any other status, from a proxy for example, it may be there still. @throws StorageError if so */
export async function checkRemoved(
  driver: Pick<Driver, 'head'>,
  { key, version }: { readonly key: string; readonly version: string | null },
  status: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (status === 204) return;
  const found = await driver.head(key, signal);
  if (found !== null && (version === null || found.version === version))
    throw new StorageError('unreachable', 'the answer to a removal is none');
}

/** The fault of a status, where the store says no more. Undefined means no answer: sockets, names, time-outs. */
export function faultByStatus(status: number | undefined): StorageFault {
  if (status === undefined) return 'unreachable';
  if (status === 429 || status === 503) return 'busy';
  // 2xx: an answer that was cut off, or is not the store's.
  if (status >= 500 || status === 408 || status < 300) return 'unreachable';
  if (status === 401 || status === 403) return 'denied';
  if (status === 404) return 'missing';
  if (status === 409) return 'busy';
  return status === 412 ? 'changed' : 'invalid';
}

/** Text of an error; its status where the answer has no text, as those of proxies. */
export function sayOf(line: string, status: number | undefined): string {
  const isMute = line.trim() === '' || line === 'UnknownError';
  return isMute && status !== undefined ? `HTTP ${status}` : line;
}
