import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Erasures } from '../../core/erasure.ts';
import type { Selection } from '../../core/journal.ts';
import type { Operations } from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import { hashedId } from '../../core/delivery-id.ts';
import { ChainedLog } from '../../lib/chained-log.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { writeOnce } from '../../lib/new-file.ts';
import type { TokenName } from './tokens.ts';

/** Name of the log's files, beside `owner.json`. */
export const AUDIT = 'audit';
/** About 200 MiB in all. */
const LIMITS = { maxBytes: 10 * 2 ** 20, keep: 20 };
/** Ids on one line. */
const IDS = 500;

/** The operations on each kind of event that is set aside. */
export const SET_ASIDE = {
  quarantine: { list: 'listQuarantine', retry: 'retryQuarantine', drop: 'dropQuarantine' },
  'dead-letters': { list: 'listDeadLetters', retry: 'retryDeadLetters', drop: 'dropDeadLetters' },
} as const;

type SetAside = keyof typeof SET_ASIDE;

/** Who asked: by which token, a command that had the journal to itself, or the receiver by itself. */
export type Asker = TokenName | 'command' | 'receiver';

/** What is noted of these stands there by the hashes of delivery ids: the log keeps them when the events, and whose they were, are erased. */
const HASHED: ReadonlySet<AuditEntry['what']> = new Set(['events', 'quarantine', 'dead-letters']);

/** A line of the log. Ids are of events hashes of their ids (`hashedId`), of sinks their names, of erasures their requests and receipts, of replays
 * their ids and from where to where; never bodies, never ids of users. */
export interface AuditEntry {
  readonly who: Asker;
  readonly action: 'show' | 'retry' | 'drop' | 'request' | 'cancel' | 'erase' | 'replay' | 'recover';
  readonly what: 'events' | 'quarantine' | 'dead-letters' | 'sinks' | 'erasures' | 'replays';
  readonly ids: readonly string[];
}

/** Who has looked at which bodies, and what was done to what is kept. What cannot be noted is not done. */
export class Audit {
  readonly #log: ChainedLog;
  readonly #folder: string;
  #key: string | null = null;

  /** @param folder where `owner.json` is */
  constructor(folder: string) {
    this.#folder = folder;
    this.#log = new ChainedLog({ folder, name: AUDIT, ...LIMITS });
  }

  /** @throws MillraceError audit_unwritable */
  async note({ ids, ...entry }: AuditEntry): Promise<void> {
    if (ids.length === 0) return;
    try {
      const noted = HASHED.has(entry.what) ? await this.#hashed(ids) : ids;
      const lines: object[] = [];
      for (let at = 0; at < noted.length; at += IDS) lines.push({ ...entry, ids: noted.slice(at, at + IDS) });
      await this.#log.append(lines);
    } catch (error) {
      throw new MillraceError('audit_unwritable', `${this.#folder}: ${messageOf(error)}`, { cause: error });
    }
  }

  async #hashed(ids: readonly string[]): Promise<readonly string[]> {
    const key = (this.#key ??= auditKey(this.#folder) ?? (await this.#makeKey()));
    return ids.map((id) => hashedId(key, id));
  }

  async #makeKey(): Promise<string> {
    makeFolder(this.#folder, 0o700);
    const made = randomBytes(32).toString('hex');
    await writeOnce(join(this.#folder, `${AUDIT}.key`), Buffer.from(`${made}\n`), OWNER_ONLY);
    // Another process may have been first.
    return auditKey(this.#folder) ?? made;
  }
}

/** @returns the key of the hashes; null when nothing was noted yet */
export function auditKey(folder: string): string | null {
  return readIfThere(join(folder, `${AUDIT}.key`))?.trim() ?? null;
}

/** The operations for one who asks. What is dropped or retried is what was noted before, page by page. */
export function auditedOperations(operations: Operations, audit: Audit, who: Asker): Operations {
  const note = async <T extends readonly { readonly id: string }[]>(
    entry: Pick<AuditEntry, 'action' | 'what'>,
    events: T,
  ): Promise<T> => {
    // What an erasure has left of an event has no id.
    const ids = events.flatMap(({ id }) => (id === '' ? [] : [id]));
    await audit.note({ who, ...entry, ids });
    return events;
  };
  const shown = async <T extends readonly { readonly id: string }[]>(
    what: AuditEntry['what'],
    bodies: boolean,
    found: T,
  ): Promise<T> => (bodies ? note({ action: 'show', what }, found) : found);
  const keysOf = async function* (
    entry: { readonly action: 'retry' | 'drop'; readonly what: SetAside },
    selection: Selection,
  ): AsyncGenerator<Selection> {
    const list = (part: Selection) => operations[SET_ASIDE[entry.what].list](part, false);
    for await (const page of pagesOf<{ key: number; id: string }>(list, selection)) {
      await note(entry, page);
      yield { keys: page.map(({ key }) => key) };
    }
  };
  const retry = async (what: SetAside, selection: Selection) => {
    let [retried, kept] = [0, 0];
    const isNamed = selection.keys !== undefined;
    // All of them first: what is refused once more meanwhile is not retried again.
    for (const part of await Array.fromAsync(keysOf({ action: 'retry', what }, selection))) {
      const done = await operations[SET_ASIDE[what].retry](part, isNamed);
      retried += done.retried;
      kept += done.kept;
    }
    return { retried, kept };
  };
  const drop = async (what: SetAside, selection: Selection) => {
    let dropped = 0;
    for await (const part of keysOf({ action: 'drop', what }, selection))
      dropped += await operations[SET_ASIDE[what].drop](part);
    return dropped;
  };
  return {
    ...operations,
    listEvents: async (selection) => shown('events', true, await operations.listEvents(selection)),
    listQuarantine: async (selection, bodies) =>
      shown('quarantine', bodies, await operations.listQuarantine(selection, bodies)),
    listDeadLetters: async (selection, bodies) =>
      shown('dead-letters', bodies, await operations.listDeadLetters(selection, bodies)),
    retryQuarantine: (selection) => retry('quarantine', selection),
    dropQuarantine: (selection) => drop('quarantine', selection),
    retryDeadLetters: (selection) => retry('dead-letters', selection),
    dropDeadLetters: (selection) => drop('dead-letters', selection),
    dropSink: async (sink) => {
      await audit.note({ who, action: 'drop', what: 'sinks', ids: [sink] });
      return operations.dropSink(sink);
    },
  };
}

/** The same for erasures. A request is known by its id once it is made, and it is on disk then whatever follows. */
export function auditedErasures(erasures: Erasures, audit: Audit, who: Asker): Erasures {
  const note = (action: AuditEntry['action'], ids: readonly string[]): Promise<void> =>
    audit.note({ who, action, what: 'erasures', ids });
  return {
    request: async (subject, now) => {
      const request = await erasures.request(subject, now);
      await note('request', [request.request]);
      return request;
    },
    cancel: async (subject) => {
      const result = await erasures.cancel(subject);
      if (result.status === 'cancelled') await note('cancel', [result.request]);
      return result;
    },
    list: () => erasures.list(),
    progress: () => erasures.progress?.() ?? Promise.resolve(null),
    run: async () => {
      const result = await erasures.run();
      await note(
        'erase',
        result.receipts.map(({ receipt }) => receipt),
      );
      return result;
    },
  };
}
