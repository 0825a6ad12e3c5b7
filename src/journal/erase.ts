import { Owners, type Subject } from '../core/erasure.ts';
import type { AsideEntries } from './aside-entries.ts';
import type { SeenIds } from './dedup.ts';
import type { ErasedAlone } from './erased-alone.ts';
import type { Base } from './events.ts';
import { ownedRows, rowsKnownBy } from './owned-rows.ts';
import { entryOfSeq } from './receipt-entries.ts';
import type { AsideTable } from './schema.ts';
import type { Scrubber } from './scrub.ts';
import type { Apply } from './sealed-ids.ts';
import { eraseGaps, eraseRecords, ownedAfter } from './segments/erasing.ts';
import type { KnownBy } from './segments/format.ts';

/** Events or rows looked at in one step: a few milliseconds, so that deliveries hardly wait. */
const SLICE = 2000;
const COUNTS = 'erasure/';
/** Of the log of receipts, base64. */
const ENTRIES = 'erasure-entries/';
/** Events that are counted as erased, and about to be. */
const INTENT = 'erasing';

/** Records taken out, by table. */
export interface ErasedCounts {
  readonly events: number;
  readonly quarantine: number;
  readonly dead_letters: number;
}

/** One step of an erasure; the next one is asked for until there is none. */
export type EraseStep =
  // First: what is retried from there while events are looked at would stand behind the last of them.
  | { readonly do: 'setAside' }
  | { readonly do: 'events'; readonly after: number; readonly upTo: number }
  /** Of events that other stores had; their records may be gone from here. */
  | { readonly do: 'known'; readonly known: readonly KnownBy[] }
  | { readonly do: 'forgotten' }
  // A segment at a time: each byte may have to be read.
  | { readonly do: 'gaps'; readonly from: number }
  | { readonly do: 'scrub'; /** Nobody waits for this journal. */ readonly alone: boolean }
  /** The receipt has them. */
  | { readonly do: 'forget' };

const KIND = { quarantine: 'quarantine', dead_letters: 'dead-letters' } as const;

interface EraserParts extends Base {
  readonly scrubber: Scrubber;
  readonly asideEntries: AsideEntries;
  readonly seen: Pick<SeenIds, 'forget'>;
  readonly alone: Pick<ErasedAlone, 'letters' | 'waiting'>;
}

/**
 * Takes users out of the journal so that no byte of theirs stays in its files.
 *
 * An event is overwritten where it stands, and keeps its place: it goes to no sink, and retention clears it away. Which
 * ones, is noted in the transaction that counts them; whoever opens the journal after a crash does it again.
 */
export class Eraser {
  readonly #parts: EraserParts;
  /** What other stores had, since it was scrubbed last. */
  #hasForgotten = false;

  constructor(parts: EraserParts) {
    this.#parts = parts;
    this.#finish();
  }

  /** @returns the step that follows, or null after the last */
  perform(subjects: readonly Subject[], step: EraseStep): EraseStep | null {
    // Zeros over what is deleted, in free pages too; FAST, the mode of every day, leaves those.
    this.#parts.db.pragma('secure_delete = ON');
    try {
      switch (step.do) {
        case 'events':
          return this.#events(subjects, step);
        case 'setAside':
          this.#setAside(subjects);
          return { do: 'events', after: 0, upTo: this.#parts.events.log.lastSeq };
        case 'gaps': {
          const next = eraseGaps(this.#parts.events.log, new Owners(subjects), step.from, (known) =>
            this.#forget(known),
          );
          return next === null ? { do: 'scrub', alone: false } : { do: 'gaps', from: next };
        }
        case 'known':
          this.#forget(step.known);
          this.#hasForgotten = true;
          return null;
        case 'forgotten':
          return this.#hasForgotten ? { do: 'scrub', alone: false } : null;
        case 'scrub':
          if (this.#parts.scrubber.scrub(step.alone)) return step;
          this.#hasForgotten = false;
          return null;
        case 'forget':
          this.#parts.transactions.run(() => {
            for (const { request } of subjects)
              for (const key of [COUNTS, ENTRIES]) this.#parts.checkpoints.remove(key + request);
          });
          return null;
        default:
          return step satisfies never;
      }
    } finally {
      this.#parts.db.pragma('secure_delete = FAST');
    }
  }

  /** Counted in the transaction that took them out, so that a crash neither loses nor doubles any. */
  counts(request: string): ErasedCounts {
    const value = this.#parts.checkpoints.load(COUNTS + request);
    return value === null ? NOTHING : (JSON.parse(value) as ErasedCounts);
  }

  /** What the log of receipts has of the events that were taken out. */
  entries(request: string): readonly string[] {
    const value = this.#parts.checkpoints.load(ENTRIES + request);
    return value === null ? [] : (JSON.parse(value) as string[]);
  }

  #events(subjects: readonly Subject[], { after, upTo }: EraseStep & { do: 'events' }): EraseStep {
    const { transactions, alone, checkpoints } = this.#parts;
    const { log } = this.#parts.events;
    const owners = new Owners(subjects);
    const { owned, last } = ownedAfter(log, owners, after, SLICE);
    if (owned.length > 0) {
      transactions.run(() => {
        this.#count('events', owned);
        alone.waiting(owned.map(({ seq }) => seq));
        this.#noteEntries(owned, ({ seq }) => entryOfSeq(log, seq)?.toString('base64'));
        checkpoints.save(INTENT, JSON.stringify(owned.map(({ seq }) => seq)));
      });
      this.#finish();
    }
    if (last !== null && last < upTo) return { do: 'events', after: last, upTo };
    // What was not looked at yet may have been copied there: a damaged record that was read, or what waited for a sink.
    this.#setAside(subjects);
    return { do: 'gaps', from: log.firstSeq };
  }

  /** @param entryOf base64; nothing where the log has none */
  #noteEntries<T extends { readonly requests: readonly string[] }>(
    owned: readonly T[],
    entryOf: (one: T) => string | undefined,
  ): void {
    const found = owned.flatMap((one) => {
      const entry = entryOf(one);
      return entry === undefined ? [] : one.requests.map((request) => ({ request, entry }));
    });
    for (const [request, own] of Map.groupBy(found, (one) => one.request)) {
      // A dead letter is an event of the segments, too.
      const all = new Set([...this.entries(request), ...own.map(({ entry }) => entry)]);
      this.#parts.checkpoints.save(ENTRIES + request, JSON.stringify([...all]));
    }
  }

  /** Overwrites what has been counted. */
  #finish(): void {
    const { checkpoints, events } = this.#parts;
    const text = checkpoints.load(INTENT);
    if (text === null) return;
    eraseRecords(events.log, JSON.parse(text) as number[]);
    checkpoints.remove(INTENT);
  }

  #setAside(subjects: readonly Subject[]): void {
    const { transactions } = this.#parts;
    const forgotten = transactions.run(() => {
      return (['quarantine', 'dead_letters'] as const).flatMap((table) =>
        this.#eraseSetAside(subjects, table),
      );
    });
    for (const apply of forgotten) apply();
  }

  #forget(known: readonly KnownBy[]): void {
    this.#parts.transactions.run(() => this.#parts.seen.forget(known))();
  }

  /** @returns to be called when it is committed */
  #eraseSetAside(subjects: readonly Subject[], table: AsideTable): Apply[] {
    const { db, asideEntries, seen, alone } = this.#parts;
    const forgotten: Apply[] = [];
    const owners = new Owners(subjects);
    const remove = db.prepare(`DELETE FROM ${table} WHERE key = ?`);
    for (let after: number | null = 0; after !== null;) {
      const found = ownedRows(db, owners, table, after, SLICE);
      const keys = found.owned.map(({ key }) => key);
      const entries = asideEntries.of(KIND[table], keys);
      this.#noteEntries(found.owned, ({ key }) => entries.get(key));
      forgotten.push(seen.forget(rowsKnownBy(db, table, keys)));
      if (table === 'dead_letters') alone.letters(keys);
      for (const key of keys) remove.run(key);
      this.#count(table, found.owned);
      after = found.last;
    }
    return forgotten;
  }

  #count(table: keyof ErasedCounts, owned: readonly { readonly requests: readonly string[] }[]): void {
    const added = new Map<string, number>();
    for (const request of owned.flatMap(({ requests }) => requests)) {
      added.set(request, (added.get(request) ?? 0) + 1);
    }
    for (const [request, count] of added) {
      const before = this.counts(request);
      const counts = { ...before, [table]: before[table] + count };
      this.#parts.checkpoints.save(COUNTS + request, JSON.stringify(counts));
    }
  }
}

const NOTHING: ErasedCounts = { events: 0, quarantine: 0, dead_letters: 0 };
