import type { Clock } from '../../core/clock.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { SinkTrouble } from '../../core/sink.ts';
import { StorageError, type StorageFault } from '../../core/storage.ts';
import { errorCode } from '../../lib/durable.ts';

/** Milliseconds for which a past trouble is still shown. */
export const SHOWN_MS = 86_400_000;

interface ShownTrouble {
  readonly trouble: SinkTrouble;
  /** Wall-clock time from which it is no longer shown; Infinity while it lasts. */
  readonly until: number;
}

/** What is wrong with the archive's folder now, or has happened to it within a day, by code. */
export class FolderTroubles {
  readonly #clock: Clock;
  readonly #shown = new Map<string, ShownTrouble>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It lasts from now on, or has lasted since the first call. */
  lasts(code: string, detail: string): void {
    const since = this.#shown.get(code)?.trouble.since ?? this.#clock.now();
    this.#shown.set(code, { trouble: { code, detail, since }, until: Number.POSITIVE_INFINITY });
  }

  /** @returns false when it was not there */
  over(code: string): boolean {
    return this.#shown.delete(code);
  }

  happened(code: string, detail: string, more: Partial<Pick<SinkTrouble, 'since' | 'lost'>> = {}): void {
    const now = this.#clock.now();
    this.#shown.set(code, { trouble: { code, detail, since: now, ...more }, until: now + SHOWN_MS });
  }

  list(): SinkTrouble[] {
    const now = this.#clock.now();
    return [...this.#shown.values()].filter(({ until }) => now < until).map(({ trouble }) => trouble);
  }
}

/** The message of an error, and what to do about one that has a cause outside of the archive. */
export function explain(error: unknown): string {
  const message = messageOf(error);
  const code = errorCode(error);
  if (code === 'EMFILE' || code === 'ENFILE')
    return `${message} (raise the limit of open files with ulimit -n)`;
  const advice = error instanceof StorageError ? ADVICE[error.fault] : undefined;
  return advice === undefined ? message : `${message} (${advice})`;
}

/** Codes of a disk that is full, failing or away for a while. */
const PASSING: ReadonlySet<string> = new Set(
  'ENOSPC EDQUOT EIO EROFS ESTALE ENOTCONN ETIMEDOUT EHOSTDOWN EMFILE ENFILE'.split(' '),
);

/**
 * The error of an `open` that failed. Only after a MillraceError it is not tried again: a store or a disk may be away for a while, and
 * the receiver starts without it.
 * @param place the config's path, a folder or a URL
 */
export function openError(place: string, folder: string, error: unknown): Error {
  if (error instanceof StorageError || PASSING.has(errorCode(error)))
    return new Error(explain(error), { cause: error });
  if (isStoreUrl(place) && error instanceof MillraceError) return error;
  return new MillraceError('folder_unwritable', `${folder}: ${explain(error)}`, { cause: error });
}

/** What to do about each; none where waiting is enough. */
const ADVICE: Partial<Record<StorageFault, string>> = {
  no_place: 'create the bucket or container, or correct the path; nothing is lost, and it is tried again',
  denied:
    'renew the credentials, let them write and list there, and compare the clock of this machine; it is tried again',
  archived:
    'a lifecycle rule has moved it to where it cannot be read at once: restore it (S3) or rehydrate it (Azure), and end that rule; it is tried again',
  invalid: 'the store will never take it: correct the config',
};

/** Code of the trouble when a file cannot be finished. */
export function codeOf(error: unknown): string {
  return error instanceof StorageError ? `store_${error.fault}` : 'unfinished';
}

/** Milliseconds that a store asked to wait. */
export function waitOf(error: unknown): number {
  return error instanceof StorageError ? (error.delayMs ?? 0) : 0;
}
