/**
 * Files under keys: a local folder, or a prefix of a container or bucket.
 *
 * Keys are relative to the store's URL, `/`-separated, without empty, `.` and `..` levels. A version names one state of one key
 * (an ETag, a generation): other bytes have another version.
 */
export interface ObjectStore {
  /** As configured, without credentials: `s3://bucket/prefix`, or an absolute path. Ends without `/`. */
  readonly url: string;
  /** Null when the key does not exist. */
  head(key: string, signal?: AbortSignal): Promise<StoredObject | null>;
  /**
   * The bytes of one version of an object. A read that breaks off continues where it was, and fails when the object has changed.
   * @throws StorageError missing, changed, or why it cannot be read
   */
  get(key: string, options?: GetOptions): AsyncIterable<Buffer>;
  /** All objects whose keys begin with the prefix, by the UTF-8 bytes of their keys. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>;
  /**
   * Writes an object atomically, unless the key exists. Durable once it resolves. When the key exists with the same bytes, as after
   * a lost answer or a kill, the result is `written`; with other bytes `taken`. So a lock must have bytes of its own.
   */
  putIfAbsent(key: string, body: ObjectBody, signal?: AbortSignal): Promise<PutResult>;
  /** Replaces one version of an object atomically; `changed` when the key has another version by now, or none. */
  putIfMatch(key: string, version: string, body: ObjectBody, signal?: AbortSignal): Promise<ReplaceResult>;
  /** Removes an object; with `version` only that one. `removed` also when it does not exist. */
  delete(key: string, version?: string, signal?: AbortSignal): Promise<'removed' | 'changed'>;
  /** Removes old versions and soft-deleted copies of a key. Names what it could not remove, for an erasure's receipt. */
  purge(key: string, signal?: AbortSignal): Promise<Purged>;
  /** Tests the rights to write, and leaves nothing behind that a listing shows. @throws StorageError */
  probe(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  readonly version: string;
  /** By the store's clock, milliseconds since the epoch. */
  readonly modifiedAt: number;
}

export interface GetOptions {
  /** First byte; absent: 0. */
  readonly offset?: number;
  readonly version?: string;
  readonly signal?: AbortSignal;
}

/** Bytes, or a local file that is read again for each attempt. */
export type ObjectBody =
  | { readonly bytes: Buffer }
  | {
      /** Absolute path; the file must not change. */
      readonly file: string;
      readonly size: number;
      /** Lower-case hex. */
      readonly sha256: string;
    };

export type PutResult =
  { readonly status: 'written'; readonly version: string } | { readonly status: 'taken' };

export type ReplaceResult =
  { readonly status: 'written'; readonly version: string } | { readonly status: 'changed' };

export interface Purged {
  /** Number of old versions and copies removed. */
  readonly removed: number;
  /** Why others are kept, and until when if the store says so. */
  readonly kept: readonly string[];
}

/**
 * Each fault, and what to do about it, for the errors of commands.
 * - `missing`: no such key; `changed`: another version than asked for;
 * - `no_place`: no such bucket or container; `denied`: credentials are wrong, expired, or allow too little;
 * - `busy`: throttled (429, 503); `unreachable`: time-out, cut connection, 5xx: the same call can succeed later;
 * - `archived`: the object must be restored from its storage class or tier first;
 * - `immutable`: a retention policy or a hold keeps the object;
 * - `invalid`: the store never accepts the call (a key too long, an object too large).
 */
export const WHAT_TO_DO = {
  missing: 'it has been removed since; run the command again',
  changed: 'it has been replaced since; run the command again',
  no_place: 'create the bucket or container, or correct the URL',
  denied: 'check the credentials: the variables that the vendor’s own tools read, or `storage` in the config',
  busy: 'the store refuses requests for now; run the command again later',
  unreachable: 'check the network and the endpoint, then run the command again',
  archived:
    'a lifecycle rule has moved it to a class that cannot be read: restore it (S3) or rehydrate it (Azure), which takes hours, then run the command again',
  immutable: 'a retention policy or a hold keeps it as it is; run the command again when it has ended',
  invalid: 'the store does not accept such a request; check the URL',
};

export type StorageFault = keyof typeof WHAT_TO_DO;

export class StorageError extends Error {
  readonly fault: StorageFault;
  /** Wait that the store asked for, milliseconds. */
  readonly delayMs: number | null;

  constructor(fault: StorageFault, message: string, options: ErrorOptions & { delayMs?: number } = {}) {
    super(message, options);
    this.name = 'StorageError';
    this.fault = fault;
    this.delayMs = options.delayMs ?? null;
  }
}
