import type Database from 'better-sqlite3';
import type { DamagedRecord } from './segments/pages.ts';
import type { SetAside } from './set-aside.ts';
import type { Transactions } from './transactions.ts';

/** A record that is not what was written. */
export interface Damage {
  readonly seq: number;
  readonly id: string | null;
}

/** Records of the segments that were found damaged. What can be read of one goes to quarantine, where a person sees it. */
export class Damages {
  readonly #db: Database.Database;
  readonly #transactions: Transactions;
  readonly #setAside: SetAside;

  constructor(db: Database.Database, transactions: Transactions, setAside: SetAside) {
    this.#db = db;
    this.#transactions = transactions;
    this.#setAside = setAside;
  }

  /** Each is noted once, however many sinks come across it; returns those that were new. */
  note(found: readonly DamagedRecord[], now: number): readonly Damage[] {
    const note = this.#db.prepare('INSERT OR IGNORE INTO damaged VALUES (?, NULL, ?)');
    return this.#transactions.run(() =>
      found.flatMap(({ seq, row, body }) => {
        const id = row?.[0] ?? null;
        if (note.run(seq, now).changes === 0) return [];
        const detail = `journal record ${seq} is damaged`;
        if (row !== null) this.#setAside.quarantine(JSON.stringify([{ code: 'damaged', detail }]), row, body);
        return [{ seq, id }];
      }),
    );
  }
}
