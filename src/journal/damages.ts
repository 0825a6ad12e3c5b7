import type { DamageReport } from '../core/journal.ts';
import type { Cursors } from './cursors.ts';
import type { Base, GoneSegment } from './events.ts';
import type { Repair } from './mend.ts';
import { lastKey, setLastKey } from './schema.ts';
import type { DamagedRecord } from './segments/pages.ts';
import type { SetAside } from './set-aside.ts';

/** A record that is not what was written. */
export interface Damage {
  readonly seq: number;
  readonly id: string | null;
}

interface DamageParts extends Base {
  readonly setAside: SetAside;
  readonly cursors: Cursors;
}

/** What was found damaged or gone. What can be read of a record goes to quarantine, where a person sees it. */
export class Damages {
  readonly #parts: DamageParts;
  readonly #insert;
  /** Seqs of the events of segments that are gone. */
  readonly #gone: (readonly [first: number, last: number])[];

  constructor(parts: DamageParts) {
    const { db } = parts;
    this.#parts = parts;
    this.#insert = db.prepare('INSERT OR IGNORE INTO damaged VALUES (?, ?, ?, ?, ?, ?)');
    const rows = db.prepare(`SELECT seq, seq + n - 1 FROM damaged WHERE what = 'segment'`).raw().all();
    this.#gone = rows as [number, number][];
  }

  /** Each is noted once, however many sinks come across it; returns those that were new. */
  note(found: readonly DamagedRecord[], now: number): readonly Damage[] {
    return this.#parts.transactions.run(() =>
      found.flatMap(({ seq, row, body }) => {
        if (this.#gone.some(([first, last]) => first <= seq && seq <= last)) return [];
        const detail = `journal record ${seq} is damaged`;
        if (this.#insert.run('record', seq, 1, detail, now, this.#waiting(seq, 1)).changes === 0) return [];
        const reasons = JSON.stringify([{ code: 'damaged', detail }]);
        if (row !== null) this.#parts.setAside.quarantine(reasons, row, body);
        return [{ seq, id: row?.[0] ?? null }];
      }),
    );
  }

  /** @returns the same, as it is told */
  noteGone(segments: readonly GoneSegment[], now: number): Repair[] {
    const lost = segments.filter(({ count }) => count > 0);
    if (lost.length === 0) return [];
    return this.#parts.transactions.run(() =>
      lost.map(({ name, firstSeq, count, isNewest }) => {
        const last = isNewest ? 'at least ' : '';
        const detail = `segment ${name} is gone, with ${last}the events ${firstSeq} to ${firstSeq + count - 1}`;
        this.#insert.run('segment', firstSeq, count, detail, now, this.#waiting(firstSeq, count));
        this.#gone.push([firstSeq, firstSeq + count - 1]);
        return { what: 'segment' as const, n: count, detail };
      }),
    );
  }

  /** @param kept the highest key of a quarantined event that a frame names */
  noteLostAside(kept: number, now: number): Repair[] {
    const given = lastKey(this.#parts.db, 'quarantine');
    if (kept <= given) return [];
    const n = kept - given;
    const detail = `${n} quarantined events are gone: the newest part of the database was lost`;
    this.#parts.transactions.run(() => {
      setLastKey(this.#parts.db, 'quarantine', kept);
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

  /** Events and rows that were lost or damaged. */
  count(): number {
    return Number(this.#parts.db.prepare('SELECT coalesce(sum(n), 0) FROM damaged').pluck().get());
  }

  /** How many of these events each sink has not had, as JSON. */
  #waiting(firstSeq: number, count: number): string {
    const behind = this.#parts.cursors.known().flatMap(([sink, seq]) => {
      const n = firstSeq + count - 1 - Math.max(seq, firstSeq - 1);
      return n > 0 ? [[sink, n] as const] : [];
    });
    return JSON.stringify(Object.fromEntries(behind));
  }
}
