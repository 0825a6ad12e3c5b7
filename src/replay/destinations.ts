import type { Redaction, Target } from '../core/route.ts';
import type { Candidate } from './unit.ts';

export interface Destinations {
  /** Whether one of the sinks asked for is a target of it, or has refused it. */
  wants(candidate: Candidate): boolean;
  /** @param before redactions that applied to the event when it was refused */
  targetsFor(type: string, before?: readonly Redaction[]): readonly Target[];
}

/**
 * @param to targets of events of a type; null for those of the routes
 * @param sinks only events routed to one of these, or refused by one; empty for all
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
