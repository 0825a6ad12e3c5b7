import type { Route } from '../core/route.ts';
import { NO_ROUTES, type RouteEra, type RouteRecord } from '../core/route-record.ts';
import type { Checkpoints } from './checkpoints.ts';

const KEY = 'routes';
/** Eras that are kept although no event of theirs is left: for whoever asks later where an event was to go. */
const KEPT = 200;

/** As older journals noted it: the routes of now, and those before each change. */
interface Former {
  readonly routes: readonly Route[] | null;
  readonly changes: readonly { readonly upTo: number; readonly before: readonly Route[] }[];
  readonly past?: readonly { readonly upTo: number; readonly before: readonly Route[] }[];
}

/** Which routes events were accepted under, in the database. Changed inside transactions of the store only. */
export class RouteRecords {
  readonly #checkpoints: Checkpoints;

  constructor(checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints;
  }

  read(): RouteRecord {
    const text = this.#checkpoints.load(KEY);
    if (text === null) return NO_ROUTES;
    const found = JSON.parse(text) as RouteRecord | Former;
    return 'eras' in found ? found : carriedOver(found);
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
  return tables.flat().some(({ to }) => to.some(({ redactions }) => redactions !== undefined));
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

/**
 * What waited went by later routes too, unless that would have lost it; which, is not known any more. While a change
 * had events that waited for it, those go by all the routes since.
 */
function carriedOver({ routes, changes, past = [] }: Former): RouteRecord {
  if (routes === null) return NO_ROUTES;
  const all = new Map([...past, ...changes].map(({ upTo, before }) => [upTo, before]));
  const steps = [...all].toSorted(([one], [other]) => one - other);
  const eras = steps.map(([upTo, before], index): RouteEra => {
    const after = index === 0 ? 0 : (steps[index - 1]?.[0] ?? 0);
    const waited = changes.some((change) => change.upTo >= upTo);
    const later = [...steps.slice(index + 1).map(([, table]) => table), routes];
    return { after, tables: waited ? [before, ...later] : [before] };
  });
  eras.push({ after: steps.at(-1)?.[0] ?? 0, tables: [routes] });
  return { ...NO_ROUTES, eras };
}
