import type { Redaction } from '../core/redaction.ts';
import type { Target } from '../core/route.ts';
import type { Candidate } from './unit.ts';

/** Where the events of a replay go. */
export interface Destinations {
  /** Whether the sinks asked for have to do with it. */
  wants(candidate: Candidate): boolean;
  /** @param before what the event had to go without when it was refused */
  targetsFor(type: string, before?: readonly Redaction[]): readonly Target[];
}

/**
 * @param to where events of a type go; null for where the routes lead
 * @param sinks only what goes to one of these by the routes, or was refused by one; empty for all
 */
export function destinationsOf(
  to: Destinations['targetsFor'] | null,
  sinks: readonly string[],
  routesFor: (type: string) => readonly Target[],
): Destinations {
  const isAsked = ({ sink }: Target): boolean => sinks.length === 0 || sinks.includes(sink);
  return {
    wants: ({ event, refusedBy }) =>
      sinks.length === 0 ||
      (refusedBy === undefined ? routesFor(event.type).some(isAsked) : sinks.includes(refusedBy)),
    targetsFor: (type, before) => to?.(type, before) ?? routesFor(type).filter(isAsked),
  };
}
