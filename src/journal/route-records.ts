import { MillraceError } from '../core/errors.ts';
import type { Route } from '../core/route.ts';
import { NO_ROUTES, type RouteEra, type RouteRecord } from '../core/route-record.ts';
import type { Checkpoints } from './checkpoints.ts';

const KEY = 'routes';
/** Eras that are kept although no event of theirs is left: for whoever asks later where an event was to go. */
const KEPT = 200;

/** Which routes events were accepted under, in the database. Changed inside transactions of the store only. */
export class RouteRecords {
  readonly #checkpoints: Checkpoints;

  constructor(checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints;
  }

  read(): RouteRecord {
    const text = this.#checkpoints.load(KEY);
    if (text === null) return NO_ROUTES;
    const record = JSON.parse(text) as RouteRecord;
    if (record.eras.some(({ tables }) => (tables.length as number) !== 1))
      throw new MillraceError(
        'journal_unreadable',
        'its routes are of another format: an era has several tables',
      );
    return record;
  }

  /** What comes after `lastSeq` is accepted under these routes. @param firstSeq the oldest event there is */
  accept(routes: readonly Route[], lastSeq: number, firstSeq: number): RouteRecord {
    const found = this.read();
    const record = { ...found, heirs: found.heirs.map((heir) => ({ ...heir, upTo: heir.upTo ?? lastSeq })) };
    const newest = record.eras.at(-1);
    if (newest !== undefined && JSON.stringify(newest.tables) === JSON.stringify([routes]))
      return found.heirs.some(({ upTo }) => upTo === null) ? this.#save(record) : found;
    // An era in which nothing came is none; but what it redacted is not to leave because another one follows.
    const before = record.eras.filter(
      (era) => era.after < lastSeq || (era.after === 0 && lastSeq > 0) || isRedacting(era),
    );
    return this.#save(
      forget({ ...record, eras: [...before, { after: lastSeq, tables: [routes] }] }, firstSeq),
    );
  }

  /** Until the next era begins; the same the other way round takes it back. */
  succeed(from: string, to: string): RouteRecord {
    const record = this.read();
    const last = record.heirs.at(-1);
    const isTakenBack = last?.upTo === null && last.from === to && last.to === from;
    const heirs = isTakenBack ? record.heirs.slice(0, -1) : [...record.heirs, { upTo: null, from, to }];
    return this.#save({ ...record, heirs });
  }

  leave(sink: string): RouteRecord {
    const record = this.read();
    return this.#save({ ...record, left: [...record.left.filter((name) => name !== sink), sink] });
  }

  /** True when the sink had left. */
  comeBack(sink: string): boolean {
    const record = this.read();
    if (!record.left.includes(sink)) return false;
    this.#save({ ...record, left: record.left.filter((name) => name !== sink) });
    return true;
  }

  #save(record: RouteRecord): RouteRecord {
    this.#checkpoints.save(KEY, JSON.stringify(record));
    return record;
  }
}

function isRedacting({ tables }: RouteEra): boolean {
  return tables[0].some(({ to }) => to.some(({ redactions }) => redactions !== undefined));
}

/** Without the oldest eras and successions, if no event of theirs is left. */
function forget(record: RouteRecord, firstSeq: number): RouteRecord {
  const { eras } = record;
  const over = eras.filter((_, index) => (eras[index + 1]?.after ?? Infinity) < firstSeq);
  const count = Math.min(over.length, eras.length - KEPT);
  if (count <= 0) return record;
  const left = eras.slice(count);
  const from = left[0]?.after ?? 0;
  return {
    ...record,
    eras: left,
    heirs: record.heirs.filter(({ upTo }) => upTo === null || upTo > from),
    forgotten: true,
  };
}
