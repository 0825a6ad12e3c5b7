import { Owners, type Subject } from '../core/erasure.ts';
import type { AsideEntries } from './aside-entries.ts';
import type { SeenIds } from './dedup.ts';
import type { ErasedAlone } from './erased-alone.ts';
import type { StoreBase } from './events.ts';
import { hashesOfRows, ownedRows, type OwnedRow } from './owned-rows.ts';
import { entryOfSeq } from './receipt-entries.ts';
import type { AsideTable } from './schema.ts';
import type { Scrubber } from './scrub.ts';
import { eraseGaps, eraseRecords, ownedAfter } from './segments/erasing.ts';
import type { EventHashes } from './segments/format.ts';

/** Events or rows examined in one step: a few milliseconds, so that deliveries hardly wait. */
const SLICE = 2000;
/** Keys of checkpoints: with the id of a request, its counts and its entries of the log of receipts (base64). */
const COUNTS = 'erasure/';
const ENTRIES = 'erasure-entries/';
/** Key of the checkpoint with the seqs that are counted as erased and about to be overwritten. */
const INTENT = 'erasing';

/** Records erased, by table. */
type ErasedCounts = Readonly<Record<'events' | AsideTable, number>>;

const NOTHING: ErasedCounts = { events: 0, quarantine: 0, dead_letters: 0 };

/** One step of an erasure. Each names the next one. */
export type EraseStep =
  // First: an event that is retried while events are examined would be behind the last of them.
  | { readonly do: 'setAside' }
  | { readonly do: 'events'; readonly after: number; readonly upTo: number }
  // One segment: each of its bytes may have to be read.
  | { readonly do: 'gaps'; readonly from: number }
  | { readonly do: 'scrub'; /** True when no deliveries wait for the journal. */ readonly alone: boolean };

const KIND = { quarantine: 'quarantine', dead_letters: 'dead-letters' } as const;

interface EraserParts extends StoreBase {
  readonly scrubber: Scrubber;
  readonly asideEntries: AsideEntries;
  readonly seen: Pick<SeenIds, 'forget'>;
  readonly alone: Pick<ErasedAlone, 'addDeadLetters' | 'addWaiting'>;
}

/**
 * Removes every byte of users from the journal's files.
 *
 * An event is overwritten in place and keeps its seq; it goes to no sink, and retention removes it. The transaction that counts the
 * events also notes which they are, so that a start after a crash overwrites them again.
 */
export class Eraser {
  readonly #parts: EraserParts;
  /** True when ids were forgotten since the database was scrubbed. */
  #hasForgotten = false;

  constructor(parts: EraserParts) {
    this.#parts = parts;
    this.#overwriteCounted();
  }

  /** @returns the next step; null after the last */
  perform(subjects: readonly Subject[], step: EraseStep): EraseStep | null {
    return this.#securely(() => {
      switch (step.do) {
        case 'events':
          return this.#eraseEvents(subjects, step);
        case 'setAside':
          this.#eraseSetAside(subjects);
          return { do: 'events', after: 0, upTo: this.#parts.events.log.lastSeq };
        case 'gaps': {
          const { log } = this.#parts.events;
          const next = eraseGaps(log, new Owners(subjects), step.from, (ids) => this.#forget(ids));
          return next === null ? { do: 'scrub', alone: false } : { do: 'gaps', from: next };
        }
        case 'scrub':
          if (this.#parts.scrubber.scrub(step.alone)) return step;
          this.#hasForgotten = false;
          return null;
        default:
          return step satisfies never;
      }
    });
  }

  /** Forgets events that other stores had; their records may be gone from here. `firstStepAfterForgetting` follows. */
  forgetIds(ids: readonly EventHashes[]): void {
    this.#securely(() => this.#forget(ids));
    this.#hasForgotten = true;
  }

  firstStepAfterForgetting(): EraseStep | null {
    return this.#hasForgotten ? { do: 'scrub', alone: false } : null;
  }

  /** Forgets the counts and entries of requests, which their receipts have now. */
  forgetRequests(requests: readonly string[]): void {
    const { transactions, checkpoints } = this.#parts;
    this.#securely(() =>
      transactions.run(() => {
        for (const request of requests)
          for (const key of [COUNTS, ENTRIES]) checkpoints.remove(key + request);
      }),
    );
  }

  /** Counts are written in the transaction that erases, so that a crash neither loses nor doubles any. */
  counts(request: string): ErasedCounts {
    const value = this.#parts.checkpoints.load(COUNTS + request);
    return value === null ? NOTHING : (JSON.parse(value) as ErasedCounts);
  }

  /** The erased events' entries of the log of receipts, base64. */
  entries(request: string): readonly string[] {
    const value = this.#parts.checkpoints.load(ENTRIES + request);
    return value === null ? [] : (JSON.parse(value) as string[]);
  }

  /** Has SQLite write zeros over what is deleted, in free pages too, which FAST, the usual mode, leaves. */
  #securely<T>(work: () => T): T {
    const { db } = this.#parts;
    db.pragma('secure_delete = ON');
    try {
      return work();
    } finally {
      db.pragma('secure_delete = FAST');
    }
  }

  #eraseEvents(subjects: readonly Subject[], { after, upTo }: EraseStep & { do: 'events' }): EraseStep {
    const { transactions, alone, checkpoints, events } = this.#parts;
    const { log } = events;
    const { owned, last } = ownedAfter(log, new Owners(subjects), after, SLICE);
    if (owned.length > 0) {
      const seqs = owned.map(({ seq }) => seq);
      transactions.run(() => {
        this.#count('events', owned);
        alone.addWaiting(seqs);
        this.#saveEntries(owned, ({ seq }) => entryOfSeq(log, seq)?.toString('base64'));
        checkpoints.save(INTENT, JSON.stringify(seqs));
      });
      this.#overwriteCounted();
    }
    if (last !== null && last < upTo) return { do: 'events', after: last, upTo };
    // An event may have been copied there before it was examined: a damaged record, or what waited for a sink.
    this.#eraseSetAside(subjects);
    return { do: 'gaps', from: log.firstSeq };
  }

  #overwriteCounted(): void {
    const { checkpoints, events } = this.#parts;
    const text = checkpoints.load(INTENT);
    if (text === null) return;
    eraseRecords(events.log, JSON.parse(text) as number[]);
    checkpoints.remove(INTENT);
  }

  #eraseSetAside(subjects: readonly Subject[]): void {
    const owners = new Owners(subjects);
    this.#parts.transactions.run(() => {
      for (const table of ['quarantine', 'dead_letters'] as const)
        for (let after: number | null = 0; after !== null;) {
          const found = ownedRows(this.#parts.db, owners, table, after, SLICE);
          this.#eraseRows(table, found.owned);
          after = found.last;
        }
    });
  }

  #eraseRows(table: AsideTable, owned: readonly OwnedRow[]): void {
    const { db, asideEntries, seen, alone } = this.#parts;
    const keys = owned.map(({ key }) => key);
    const entries = asideEntries.of(KIND[table], keys);
    this.#saveEntries(owned, ({ key }) => entries.get(key));
    seen.forget(hashesOfRows(db, table, keys));
    if (table === 'dead_letters') alone.addDeadLetters(keys);
    const remove = db.prepare(`DELETE FROM ${table} WHERE key = ?`);
    for (const key of keys) remove.run(key);
    this.#count(table, owned);
  }

  #forget(ids: readonly EventHashes[]): void {
    this.#parts.transactions.run(() => this.#parts.seen.forget(ids));
  }

  /** @param entryOf base64; undefined for an event without an entry */
  #saveEntries<T extends { readonly requests: readonly string[] }>(
    owned: readonly T[],
    entryOf: (one: T) => string | undefined,
  ): void {
    const found = owned.flatMap((one) => {
      const entry = entryOf(one);
      return entry === undefined ? [] : one.requests.map((request) => ({ request, entry }));
    });
    for (const [request, own] of Map.groupBy(found, (one) => one.request)) {
      // A dead letter and its event in the segments have the same entry.
      const all = new Set([...this.entries(request), ...own.map(({ entry }) => entry)]);
      this.#parts.checkpoints.save(ENTRIES + request, JSON.stringify([...all]));
    }
  }

  #count(table: keyof ErasedCounts, owned: readonly { readonly requests: readonly string[] }[]): void {
    const found = owned.flatMap(({ requests }) => requests);
    for (const [request, { length }] of Map.groupBy(found, (one) => one)) {
      const before = this.counts(request);
      const counts = { ...before, [table]: before[table] + length };
      this.#parts.checkpoints.save(COUNTS + request, JSON.stringify(counts));
    }
  }
}
