import type { Clock } from '../../core/clock.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { isStoreUrl } from '../../core/place.ts';
import type { SinkTrouble } from '../../core/sink.ts';
import { StorageError, type StorageFault } from '../../core/storage.ts';
import { errorCode } from '../../lib/durable.ts';

/** Milliseconds for which something that has happened, and is over, is still shown. */
export const SHOWN = 86_400_000;

interface Entry {
  readonly trouble: SinkTrouble;
  /** Wall-clock time from which it is shown no longer; Infinity while it lasts. */
  readonly until: number;
}

/** What is wrong with the archive's folder now, or has happened to it within a day, by code. */
export class FolderTroubles {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on, or from before if it was already. */
  lasts(code: string, detail: string): void {
    const since = this.#entries.get(code)?.trouble.since ?? this.#clock.now();
    this.#entries.set(code, { trouble: { code, detail, since }, until: Number.POSITIVE_INFINITY });
  }

  /** @returns false when it was not there */
  over(code: string): boolean {
    return this.#entries.delete(code);
  }

  happened(code: string, detail: string): void {
    const since = this.#clock.now();
    this.#entries.set(code, { trouble: { code, detail, since }, until: since + SHOWN });
  }

  list(): SinkTrouble[] {
    const now = this.#clock.now();
    return [...this.#entries.values()].filter(({ until }) => now < until).map(({ trouble }) => trouble);
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

/** Of a disk that is full, at fault, or away: what was a folder once will be one again. */
const PASSING: ReadonlySet<string> = new Set(
  'ENOSPC EDQUOT EIO EROFS ESTALE ENOTCONN ETIMEDOUT EHOSTDOWN EMFILE ENFILE'.split(' '),
);

/**
 * What a sink says that could not be opened. A store or a disk may be away for a while: the receiver starts without it, and
 * it is tried again, which another error than a MillraceError asks for.
 * @param place the config's path, a folder or a URL
 */
export function unopened(place: string, folder: string, error: unknown): Error {
  if (error instanceof StorageError || PASSING.has(errorCode(error)))
    return new Error(explain(error), { cause: error });
  if (isStoreUrl(place) && error instanceof MillraceError) return error;
  return new MillraceError('folder_unwritable', `${folder}: ${explain(error)}`, { cause: error });
}

/** None where time alone helps. */
const ADVICE: Partial<Record<StorageFault, string>> = {
  no_place: 'create the bucket or container, or correct the path; nothing is lost, and it is tried again',
  denied:
    'renew the credentials, let them write and list there, and compare the clock of this machine; it is tried again',
  archived:
    'a lifecycle rule has moved it to where it cannot be read at once: restore it (S3) or rehydrate it (Azure), and end that rule; it is tried again',
  invalid: 'the store will never take it: correct the config',
};

/** Of the trouble that an error makes when a file cannot be finished. */
export function codeOf(error: unknown): string {
  return error instanceof StorageError ? `store_${error.fault}` : 'unfinished';
}

/** Milliseconds that a store asked to wait. */
export function waitOf(error: unknown): number {
  return error instanceof StorageError ? (error.delayMs ?? 0) : 0;
}
