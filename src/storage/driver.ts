import { StorageError, type StoredObject, type StorageFault } from '../core/storage.ts';

/**
 * What one vendor's store can do, one request each (`parts` apart): nothing here tries again, waits, or knows of keys that
 * are relative. Remote-store.ts makes of it what the port promises. Every call ends when its signal aborts.
 */
export interface Driver {
  /** Null when there is no such key; a bucket that is not there is an error. */
  head(key: string, signal: AbortSignal): Promise<Found | null>;
  /** From an offset on; the body ends early when the connection does, and with an error or without one. */
  read(key: string, from: From, signal: AbortSignal): Promise<Reading>;
  /** In the order of the keys' UTF-8 bytes. @param after what the page before said is next */
  page(prefix: string, after: string | null, signal: AbortSignal): Promise<Page>;
  /** Writes a small object. @returns its version @throws what `isUnmet` tells when the condition does not hold: nothing was written */
  put(key: string, whole: Whole, condition: Condition, signal: AbortSignal): Promise<string>;
  /** Begins to write a large object. @throws as `put`, or its upload does */
  upload(key: string, body: Facts, condition: Condition, signal: AbortSignal): Promise<Upload>;
  /** @throws `changed` when there is another version; `missing` where nothing is there, or nothing */
  remove(key: string, version: string | null, signal: AbortSignal): Promise<void>;
  /** What is kept of a key beside its present state. */
  remains(key: string, signal: AbortSignal): Promise<readonly Remains[]>;
  /** A version that no object ever has. */
  readonly noVersion: string;
  /** What an error of any of these calls means. */
  faultOf(error: unknown): StorageError;
  close(): void;
}

/** The write must find no object, or this version of it. */
export type Condition = { readonly version: string | null };

export interface Found extends StoredObject {
  /** As written with it, lower-case hex; null when another program wrote it. */
  readonly sha256: string | null;
}

export interface From {
  readonly offset: number;
  /** Only this one. */
  readonly version: string | null;
}

export interface Reading {
  readonly version: string;
  /** Of the whole object. */
  readonly bytes: number;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Page {
  readonly objects: readonly StoredObject[];
  /** Null on the last page. */
  readonly next: string | null;
}

export interface Facts {
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

export interface Whole extends Facts {
  readonly bytes: Buffer;
}

/** An object in the making, of which nobody sees anything before `finish`. */
export interface Upload {
  /** How many parts may be on their way at once. */
  readonly parallel: number;
  /** All parts have the same size but the last. May be called again for the same part. @param number from 0 on */
  part(number: number, offset: number, bytes: Buffer, signal: AbortSignal): Promise<void>;
  /** As `put`. @throws UploadGone */
  finish(signal: AbortSignal): Promise<string>;
  /** Removes what was uploaded; nothing there is fine. */
  abandon(signal: AbortSignal): Promise<void>;
}

/** The store does not know the upload any more: it was finished, and the answer lost, or somebody has ended it. */
export class UploadGone extends StorageError {
  constructor(cause: unknown) {
    super('changed', 'the store does not know the upload any more', { cause });
  }
}

/** Whether an error says that the condition of a write does not hold: what is to be replaced may be gone altogether. */
export function isUnmet({ version }: Condition, error: unknown): boolean {
  if (!(error instanceof StorageError) || error instanceof UploadGone) return false;
  return error.fault === 'changed' || (error.fault === 'missing' && version !== null);
}

export interface Remains {
  /** For people: `version 7 of 2026-11-21`. */
  readonly name: string;
  /** Hides the others, so it stays where one of them does. */
  readonly isMarker?: boolean;
  /** @throws what keeps it */
  remove(signal: AbortSignal): Promise<void>;
}

/** Variables by name; a vendor's own tools read some too. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Bytes of the whole object, as an answer's Content-Range tells; undefined without one. */
export function totalOf(contentRange: string | undefined): number | undefined {
  const total = /\/(\d+)$/.exec(contentRange ?? '')?.[1];
  return total === undefined ? undefined : Number(total);
}

/**
 * What is read from behind the end of an object: nothing, of the version that was asked for.
 * @param error what the store says of such an offset @throws it, when there is no such version
 */
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

/**
 * Stores answer a removal with 204. What answers otherwise, such as a proxy with a page of its own, may have removed nothing.
 * @throws StorageError when it has not
 */
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

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** What a status means where the store says no more; none is no answer at all: sockets, names, time-outs. */
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

/** What an error is called; by its status where the answer has no words of its own, as those of proxies have not. */
export function sayOf(line: string, status: number | undefined): string {
  const isMute = line.trim() === '' || line === 'UnknownError';
  return isMute && status !== undefined ? `HTTP ${status}` : line;
}
