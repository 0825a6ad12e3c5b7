import type { DamageReport } from '../core/journal.ts';
import type { Cursors } from './cursors.ts';
import type { LostSegment, StoreBase } from './events.ts';
import type { Repair } from './mend.ts';
import { lastKey, setLastKey } from './schema.ts';
import type { DamagedRecord } from './segments/pages.ts';
import type { SetAside } from './set-aside.ts';

/** A damaged record. */
export interface Damage {
  readonly seq: number;
  /** Null when it cannot be read. */
  readonly id: string | null;
}

interface DamageParts extends StoreBase {
  readonly setAside: SetAside;
  readonly cursors: Cursors;
}

/** What was found damaged or lost, in the table `damaged`. Records that can be read are quarantined as well. */
export class Damages {
  readonly #parts: DamageParts;
  readonly #insert;
  /** Seqs of the events of lost segments. */
  readonly #lost: (readonly [first: number, last: number])[];

  constructor(parts: DamageParts) {
    const { db } = parts;
    this.#parts = parts;
    this.#insert = db.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?, ?, ?, ?, ?)');
    const rows = db.prepare(`SELECT seq, seq + n - 1 FROM damaged WHERE what = 'segment'`).raw().all();
    this.#lost = rows as [number, number][];
  }

  /** Notes damaged records, each once, however many sinks read it. @returns those that were new */
  note(found: readonly DamagedRecord[], now: number): readonly Damage[] {
    return this.#parts.transactions.run(() =>
      found.flatMap(({ seq, row, body }) => {
        if (this.#lost.some(([first, last]) => first <= seq && seq <= last)) return [];
        const detail = `journal record ${seq} is damaged`;
        if (this.#insert.run('record', seq, 1, detail, now, this.#waiting(seq, 1)).changes === 0) return [];
        const reasons = JSON.stringify([{ code: 'damaged', detail }]);
        if (row !== null) this.#parts.setAside.quarantine(reasons, row, body);
        return [{ seq, id: row?.[0] ?? null }];
      }),
    );
  }

  noteLostSegments(segments: readonly LostSegment[], now: number): Repair[] {
    const lost = segments.filter(({ count }) => count > 0);
    if (lost.length === 0) return [];
    return this.#parts.transactions.run(() =>
      lost.map(({ name, firstSeq, count, isNewest }) => {
        const lastSeq = firstSeq + count - 1;
        const events = `${isNewest ? 'at least ' : ''}the events ${firstSeq} to ${lastSeq}`;
        const detail = `segment ${name} is gone, with ${events}`;
        this.#insert.run('segment', firstSeq, count, detail, now, this.#waiting(firstSeq, count));
        this.#lost.push([firstSeq, lastSeq]);
        return { what: 'segment', n: count, detail };
      }),
    );
  }

  /** @param kept highest key of a quarantined event that a frame names */
  noteLostQuarantine(kept: number, now: number): Repair[] {
    const { db, transactions } = this.#parts;
    const n = kept - lastKey(db, 'quarantine');
    if (n <= 0) return [];
    const detail = `${n} quarantined events are gone: the newest part of the database was lost`;
    transactions.run(() => {
      setLastKey(db, 'quarantine', kept);
      this.#insert.run('quarantine', now, n, detail, now, '{}');
    });
    return [{ what: 'quarantine', n, detail }];
  }

  /** What was found since a time, milliseconds since the epoch. */
  since(time: number): readonly DamageReport[] {
    const rows = this.#parts.db
      .prepare(
        'SELECT what, n, detail, waiting FROM damaged WHERE found_at >= ? ORDER BY found_at, what, seq',
      )
      .all(time) as (Omit<DamageReport, 'waiting'> & { readonly waiting: string })[];
    return rows.map((row) => ({ ...row, waiting: JSON.parse(row.waiting) as DamageReport['waiting'] }));
  }

  /** Events and rows that are damaged or lost. */
  count(): number {
    return Number(this.#parts.db.prepare('SELECT coalesce(sum(n), 0) FROM damaged').pluck().get());
  }

  /** How many of these events each sink has not had, as JSON. */
  #waiting(firstSeq: number, count: number): string {
    const waiting = this.#parts.cursors.known().flatMap(([sink, seq]) => {
      const n = firstSeq + count - 1 - Math.max(seq, firstSeq - 1);
      return n > 0 ? [[sink, n] as const] : [];
    });
    return JSON.stringify(Object.fromEntries(waiting));
  }
}
