/**
 * A place where files lie under keys: a local folder, or a container, bucket or prefix of an object store. One port, so that
 * archives and tables can lie anywhere.
 *
 * Keys are relative to the store's URL, `/`-separated, without empty, `.` and `..` levels. A version is what the store names
 * one state of one key by (an ETag, a generation): other bytes have another one; it means nothing elsewhere.
 */
export interface ObjectStore {
  /** As configured, without credentials: `s3://bucket/prefix`, or an absolute path. Ends without `/`. */
  readonly url: string;
  /** What lies under the key, or null. */
  head(key: string, signal?: AbortSignal): Promise<StoredObject | null>;
  /**
   * The bytes of one object from an offset on, of one version from the first byte to the last: a read that breaks off goes
   * on where it was, and fails when the object was changed meanwhile.
   * @throws StorageError missing, changed, or what kept it from being read
   */
  get(key: string, options?: GetOptions): AsyncIterable<Buffer>;
  /** All objects whose keys begin with the prefix, in order of their keys' UTF-8 bytes. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>;
  /**
   * Writes an object that is not there yet, whole: nobody ever sees a part of it. Durable once it resolves. After an answer
   * that was lost it finds its own bytes there and says `written`; other bytes under the key are `taken`, and left alone.
   * So the same bytes can be written again by anybody, after a kill too; whoever needs a lock writes bytes of its own.
   */
  putIfAbsent(key: string, body: ObjectBody, signal?: AbortSignal): Promise<PutResult>;
  /** The same in place of one version of an object; `changed` when the key has another version by now, or none. */
  putIfMatch(key: string, version: string, body: ObjectBody, signal?: AbortSignal): Promise<ReplaceResult>;
  /** Removes an object, if it still has this version where one is given. One that is gone already is removed. */
  delete(key: string, version?: string, signal?: AbortSignal): Promise<'removed' | 'changed'>;
  /**
   * Removes what the store still keeps of a key beside its present state: old versions, soft-deleted copies. Says what it
   * could not remove, for an erasure's receipt.
   */
  purge(key: string, signal?: AbortSignal): Promise<Purged>;
  /** Tries what writing needs, without leaving anything behind that a listing shows. @throws StorageError */
  probe(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  readonly version: string;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly modifiedAt: number;
}

export interface GetOptions {
  /** First byte wanted; 0 when absent. */
  readonly offset?: number;
  /** Only this version. */
  readonly version?: string;
  readonly signal?: AbortSignal;
}

/** What is to be written: bytes, or a finished local file, which is read again when an upload is tried again. */
export type ObjectBody =
  | { readonly bytes: Buffer }
  | {
      /** Absolute path of a file that nobody changes. */
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
  /** Old versions and copies that are gone now. */
  readonly removed: number;
  /** Why others are still kept, and until when where the store says so; empty when nothing is. */
  readonly kept: readonly string[];
}

/**
 * What went wrong, as far as it makes a difference to the caller:
 * - `missing`: no such key; `changed`: another version than asked for;
 * - `no_place`: the bucket or container is not there; `denied`: credentials are wrong, expired, or allow too little;
 * - `busy`: throttled (429, 503); `unreachable`: time-out, cut connection, 5xx: the same call can succeed later;
 * - `archived`: in a class or tier of the store that has to be restored before anything can be read;
 * - `invalid`: the store will never take it (a key too long, an object too large).
 */
export type StorageFault =
  | 'missing'
  | 'changed'
  | 'no_place'
  | 'denied'
  | 'busy'
  | 'unreachable'
  | 'archived'
  | 'immutable'
  | 'invalid';

export class StorageError extends Error {
  readonly fault: StorageFault;
  /** Milliseconds to wait that the store asked for. */
  readonly delayMs: number | null;

  constructor(fault: StorageFault, message: string, options: ErrorOptions & { delayMs?: number } = {}) {
    super(message, options);
    this.name = 'StorageError';
    this.fault = fault;
    this.delayMs = options.delayMs ?? null;
  }
}

/** What a person is to do about each, who has seen a command fail. */
export const WHAT_TO_DO: Readonly<Record<StorageFault, string>> = {
  missing: 'it was removed meanwhile; run the command again',
  changed: 'it was replaced meanwhile; run the command again',
  no_place: 'create the bucket or container, or correct the URL',
  denied: 'check the credentials: the variables that the vendor’s own tools read, or `storage` in the config',
  busy: 'the store refuses requests for now; run the command again later',
  unreachable: 'check the network and the endpoint, then run the command again',
  archived:
    'a lifecycle rule has moved it to where it cannot be read at once: restore it (S3) or rehydrate it (Azure), which takes hours, then run the command again',
  immutable: 'a retention policy or a hold keeps it as it is; run the command again when it has ended',
  invalid: 'the store does not take such a request; check the URL',
};
