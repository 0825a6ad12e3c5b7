import type { Route } from './route.ts';

/**
 * The routes in force while events were accepted: for those after seq `after`, up to the next era. Of eras after the same seq
 * only the last has events.
 */
export interface RouteEra {
  readonly after: number;
  readonly tables: readonly [readonly Route[]];
}

/** One sink that continued for another: what was accepted up to seq `upTo` for `from` is for `to`. Oldest first. */
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
  readonly heirs: readonly Succession[];
  /** Sinks that were taken out when nothing waited for them any more. */
  readonly left: readonly string[];
  /** True once eras have been forgotten: of older events nobody can say where they were to go. */
  readonly forgotten: boolean;
}

export const NO_ROUTES: RouteRecord = { eras: [], heirs: [], left: [], forgotten: false };
