import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { Erasures } from '../../core/erasure.ts';
import type { Selection } from '../../core/journal.ts';
import type { Operations } from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import type { SetAsideKind } from '../../core/receipt.ts';
import { hashedId } from '../../core/delivery-id.ts';
import { ChainedLog } from '../../lib/chained-log.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { writeOnce } from '../../lib/new-file.ts';
import { verifyChain } from '../../lib/verify-chain.ts';
import type { TokenName } from './tokens.ts';

/** Name of the log's files, beside `owner.json`. */
export const AUDIT = 'audit';
/** About 200 MiB in all. */
const LIMITS = { maxBytes: 10 * 2 ** 20, keep: 20 };
/** Ids on one line. */
const IDS = 500;

/** Operations on quarantine and on dead letters. */
export const SET_ASIDE = {
  quarantine: { list: 'listQuarantine', retry: 'retryQuarantine', drop: 'dropQuarantine' },
  'dead-letters': { list: 'listDeadLetters', retry: 'retryDeadLetters', drop: 'dropDeadLetters' },
} as const;

/** Who acted: the owner of a token, a command that opened the journal itself, or the receiver. */
export type Actor = TokenName | 'command' | 'receiver';

/** Ids of these are hashed: the log outlives erased events. */
const HASHED: ReadonlySet<unknown> = new Set(['events', 'quarantine', 'dead-letters']);

/**
 * A line of the log, without bodies and ids of users. Ids are hashes for events (`hashedId`), names for sinks, requests or receipts
 * for erasures, and id and description for replays.
 */
export interface AuditEntry {
  readonly who: Actor;
  readonly action: 'show' | 'retry' | 'drop' | 'request' | 'cancel' | 'erase' | 'replay' | 'recover';
  readonly what: 'events' | 'quarantine' | 'dead-letters' | 'sinks' | 'erasures' | 'replays';
  readonly ids: readonly string[];
}

/** The audit log. An action that cannot be recorded is not done. */
export class Audit {
  readonly #log: ChainedLog;
  readonly #folder: string;
  #key: string | null = null;

  /** @param folder of `owner.json` */
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
    const key = (this.#key ??= (await auditKey(this.#folder)) ?? (await this.#makeKey()));
    return ids.map((id) => hashedId(key, id));
  }

  async #makeKey(): Promise<string> {
    makeFolder(this.#folder, 0o700);
    const made = randomBytes(32).toString('hex');
    await writeOnce(join(this.#folder, `${AUDIT}.key`), Buffer.from(`${made}\n`), OWNER_ONLY);
    // Another process can have created it first.
    return readKey(this.#folder) ?? made;
  }
}

/**
 * The key of the hashes; null before the first hash.
 * @throws MillraceError file_unusable when it is damaged, or missing beside a log with hashes
 */
export async function auditKey(folder: string): Promise<string | null> {
  let key = readKey(folder);
  if (key === null && !(await hasHashes(folder))) return null;
  // Another process can have created it, and its first hashes, in between.
  key ??= readKey(folder);
  if (key !== null && /^[0-9a-f]{64}$/.test(key)) return key;
  throw new MillraceError(
    'file_unusable',
    `${join(folder, `${AUDIT}.key`)} is missing or damaged, and the events in the log cannot be found without it: ` +
      `restore it from a backup, or move ${AUDIT}.* to another folder to begin a new log`,
  );
}

function readKey(folder: string): string | null {
  return readIfThere(join(folder, `${AUDIT}.key`))?.trim() ?? null;
}

async function hasHashes(folder: string): Promise<boolean> {
  let has = false;
  await verifyChain(folder, AUDIT, {
    onLine: (line) => void (has ||= HASHED.has((line as Partial<AuditEntry>).what)),
  });
  return has;
}

/** Operations that record the actor before each action, page by page. */
export function auditedOperations(operations: Operations, audit: Audit, who: Actor): Operations {
  const note = async <T extends readonly { readonly id: string }[]>(
    action: AuditEntry['action'],
    what: AuditEntry['what'],
    events: T,
  ): Promise<T> => {
    // Erased events have no id.
    const ids = events.flatMap(({ id }) => (id === '' ? [] : [id]));
    await audit.note({ who, action, what, ids });
    return events;
  };
  const keysOf = async function* (
    action: 'retry' | 'drop',
    what: SetAsideKind,
    selection: Selection,
  ): AsyncGenerator<Selection> {
    const list = (part: Selection) => operations[SET_ASIDE[what].list](part, false);
    for await (const page of pagesOf<{ key: number; id: string }>(list, selection)) {
      await note(action, what, page);
      yield { keys: page.map(({ key }) => key) };
    }
  };
  const retry = async (what: SetAsideKind, selection: Selection) => {
    let [retried, kept] = [0, 0];
    const isNamed = selection.keys !== undefined;
    // The list is complete before the first retry: an event that is refused again is not retried twice.
    for (const part of await Array.fromAsync(keysOf('retry', what, selection))) {
      const done = await operations[SET_ASIDE[what].retry](part, isNamed);
      retried += done.retried;
      kept += done.kept;
    }
    return { retried, kept };
  };
  const drop = async (what: SetAsideKind, selection: Selection) => {
    let dropped = 0;
    for await (const part of keysOf('drop', what, selection))
      dropped += await operations[SET_ASIDE[what].drop](part);
    return dropped;
  };
  return {
    ...operations,
    listEvents: async (selection) => note('show', 'events', await operations.listEvents(selection)),
    listQuarantine: async (selection, bodies) => {
      const found = await operations.listQuarantine(selection, bodies);
      return bodies ? note('show', 'quarantine', found) : found;
    },
    listDeadLetters: async (selection, bodies) => {
      const found = await operations.listDeadLetters(selection, bodies);
      return bodies ? note('show', 'dead-letters', found) : found;
    },
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

/** Erasures that record the actor. A request is recorded after it is made, when it has an id. */
export function auditedErasures(erasures: Erasures, audit: Audit, who: Actor): Erasures {
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
