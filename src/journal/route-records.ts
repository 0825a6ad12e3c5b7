import { MillraceError } from '../core/errors.ts';
import type { Route } from '../core/route.ts';
import {
  fromRouteRecordJson,
  NO_ROUTES,
  toRouteRecordJson,
  type RouteEra,
  type RouteRecord,
  type RouteRecordJson,
} from '../core/route-record.ts';
import type { Checkpoints } from './checkpoints.ts';

/** Key of the checkpoint. */
export const ROUTES = 'routes';
/** Eras kept though none of their events is left, to say later where an event was to go. */
const ERAS_KEPT = 200;

/** The routes that events were accepted under, in a checkpoint. Changed inside transactions of the store only. */
export class RouteRecords {
  readonly #checkpoints: Checkpoints;

  constructor(checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints;
  }

  /** @throws MillraceError journal_unreadable */
  read(): RouteRecord {
    const text = this.#checkpoints.load(ROUTES);
    if (text === null) return NO_ROUTES;
    const record = fromRouteRecordJson(JSON.parse(text) as RouteRecordJson);
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
    const successors = found.successors.map((one) => ({ ...one, upTo: one.upTo ?? lastSeq }));
    const record = { ...found, successors };
    const newest = record.eras.at(-1);
    if (newest !== undefined && JSON.stringify(newest.tables) === JSON.stringify([routes]))
      return found.successors.some(({ upTo }) => upTo === null) ? this.#save(record) : found;
    // An era without events is dropped, unless it redacted something that a later era may still have to leave out.
    const before = record.eras.filter(
      (era) => era.after < lastSeq || (era.after === 0 && lastSeq > 0) || isRedacting(era),
    );
    return this.#save(
      forgetOldEras({ ...record, eras: [...before, { after: lastSeq, tables: [routes] }] }, firstSeq),
    );
  }

  /** Until the next era begins; the same the other way round reverts it. */
  succeed(from: string, to: string): RouteRecord {
    const record = this.read();
    const last = record.successors.at(-1);
    const isReverted = last?.upTo === null && last.from === to && last.to === from;
    const successors = isReverted
      ? record.successors.slice(0, -1)
      : [...record.successors, { upTo: null, from, to }];
    return this.#save({ ...record, successors });
  }

  leave(sink: string): RouteRecord {
    const record = this.read();
    return this.#save({ ...record, left: [...record.left.filter((name) => name !== sink), sink] });
  }

  comeBack(sink: string): void {
    const record = this.read();
    this.#save({ ...record, left: record.left.filter((name) => name !== sink) });
  }

  #save(record: RouteRecord): RouteRecord {
    this.#checkpoints.save(ROUTES, JSON.stringify(toRouteRecordJson(record)));
    return record;
  }
}

function isRedacting({ tables }: RouteEra): boolean {
  return tables[0].some(({ to }) => to.some(({ redactions }) => redactions !== undefined));
}

/** Drops the oldest eras and successions that have no event left. */
function forgetOldEras(record: RouteRecord, firstSeq: number): RouteRecord {
  const { eras } = record;
  const over = eras.filter((_, index) => (eras[index + 1]?.after ?? Infinity) < firstSeq);
  const count = Math.min(over.length, eras.length - ERAS_KEPT);
  if (count <= 0) return record;
  const left = eras.slice(count);
  const from = left[0]?.after ?? 0;
  return {
    ...record,
    eras: left,
    successors: record.successors.filter(({ upTo }) => upTo === null || upTo > from),
    forgotten: true,
  };
}
