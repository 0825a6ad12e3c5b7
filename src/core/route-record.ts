import type { Route } from './route.ts';

/**
 * The routes in force while events were accepted: for those after seq `after`, up to the next era. Of eras after the same seq
 * only the last has events.
 */
export interface RouteEra {
  readonly after: number;
  readonly tables: readonly [readonly Route[]];
}

/** Sink `to` continues for sink `from`: it gets what was accepted for `from` up to seq `upTo`. */
export interface Succession {
  /** Null until the next era begins: what comes in until then is still accepted for `from`. */
  readonly upTo: number | null;
  readonly from: string;
  readonly to: string;
}

/** Where events are to go, kept in the journal with them. */
export interface RouteRecord {
  /** Oldest first. */
  readonly eras: readonly RouteEra[];
  /** Oldest first. */
  readonly successors: readonly Succession[];
  /** Sinks that were removed when nothing waited for them any more. */
  readonly left: readonly string[];
  /** True once eras have been forgotten: where older events were to go is not known. */
  readonly forgotten: boolean;
}

export const NO_ROUTES: RouteRecord = { eras: [], successors: [], left: [], forgotten: false };

/** A record as JSON: in the journal's database, and in answers of the admin API. Its key of the successors is an older one. */
export interface RouteRecordJson extends Omit<RouteRecord, 'successors'> {
  readonly heirs: readonly Succession[];
}

export function toRouteRecordJson({ eras, successors, left, forgotten }: RouteRecord): RouteRecordJson {
  return { eras, heirs: successors, left, forgotten };
}

export function fromRouteRecordJson({ eras, heirs, left, forgotten }: RouteRecordJson): RouteRecord {
  return { eras, successors: heirs, left, forgotten };
}
