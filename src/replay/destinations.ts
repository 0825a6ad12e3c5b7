import type { Target } from '../core/route.ts';
import type { Candidate } from './unit.ts';

/** Where the events of a replay go. */
export interface Destinations {
  /** Whether the sinks asked for have to do with it. */
  wants(candidate: Candidate): boolean;
  targetsFor(type: string): readonly Target[];
}

/**
 * @param to where events of a type go; null for where the routes lead
 * @param sinks only what goes to one of these by the routes, or was refused by one; empty for all
 */
export function destinationsOf(
  to: ((type: string) => readonly Target[]) | null,
  sinks: readonly string[],
  routesFor: (type: string) => readonly Target[],
): Destinations {
  const isAsked = ({ sink }: Target): boolean => sinks.length === 0 || sinks.includes(sink);
  return {
    wants: ({ event, refusedBy }) =>
      sinks.length === 0 ||
      (refusedBy === undefined ? routesFor(event.type).some(isAsked) : sinks.includes(refusedBy)),
    targetsFor: (type) => to?.(type) ?? routesFor(type).filter(isAsked),
  };
}
