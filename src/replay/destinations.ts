import type { Target } from '../core/route.ts';
import type { Candidate } from './unit.ts';

export interface DestinationOptions {
  /** Where every event goes; null for where the routes lead. */
  readonly to: readonly Target[] | null;
  /** Only what goes to one of these sinks by the routes, or was refused by one; empty for all. */
  readonly sinks: readonly string[];
  readonly routesFor: (type: string) => readonly Target[];
}

/** Where the events of a replay go. */
export class Destinations {
  readonly #options: DestinationOptions;

  constructor(options: DestinationOptions) {
    this.#options = options;
  }

  /** Whether the sinks asked for have to do with it. */
  wants({ event, refusedBy }: Candidate): boolean {
    const { sinks, routesFor } = this.#options;
    if (sinks.length === 0) return true;
    if (refusedBy !== undefined) return sinks.includes(refusedBy);
    return routesFor(event.type).some(({ sink }) => sinks.includes(sink));
  }

  targetsFor(type: string): readonly Target[] {
    const { to, sinks, routesFor } = this.#options;
    if (to !== null) return to;
    const targets = routesFor(type);
    return sinks.length === 0 ? targets : targets.filter(({ sink }) => sinks.includes(sink));
  }
}
