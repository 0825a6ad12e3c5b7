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

/** The target that `sink:` means: the default destination. */
export function plainTarget({ sink, destination }: Target): Target {
  return { sink, destination: destination === '' ? null : destination };
}

/**
 * Where the targets that a replay names are for a type that the routes lead to `routed`. A sink without a destination is where the
 * routes lead to in it, else its default destination if it has one.
 */
export function targetsNamed(
  named: readonly Target[],
  routed: readonly Target[],
  hasDefault: (sink: string) => boolean,
): readonly Target[] {
  return named.flatMap((target) => {
    if (target.destination !== null) return [plainTarget(target)];
    const inSink = routed.filter(({ sink }) => sink === target.sink);
    return inSink.length > 0 || !hasDefault(target.sink) ? inSink : [target];
  });
}
