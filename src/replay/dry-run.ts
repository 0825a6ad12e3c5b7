import { messageOf } from '../core/errors.ts';
import { formatTarget } from '../core/route.ts';
import { stepsOf, type UnitReader } from './ahead.ts';
import { Counter, type Counts } from './counts.ts';
import type { ReplayOptions } from './replay.ts';
import type { Unit } from './unit.ts';

export interface DryRun {
  readonly counts: Counts;
  /** Targets by type. */
  readonly routes: Readonly<Record<string, readonly string[]>>;
}

/** Reads everything that a replay would read, and counts what it would send, by type and destination. */
export async function dryRun(
  units: AsyncIterable<Unit>,
  options: UnitReader & Pick<ReplayOptions, 'destinations' | 'pseudonymiser' | 'onProblem'>,
  signal: AbortSignal,
): Promise<DryRun> {
  const { destinations, pseudonymiser, onProblem } = options;
  const counter = new Counter();
  const routes = new Map<string, readonly string[]>();
  for await (const [, steps] of stepsOf(units, options, 0, signal)) {
    for await (const { counts, found, problems } of steps) {
      counter.add(counts);
      for (const problem of problems) onProblem(problem);
      for (const candidate of found) {
        if (!destinations.wants(candidate)) continue;
        try {
          const { type } = pseudonymiser(candidate.event);
          const targets = destinations.targetsFor(type);
          counter.event(type, targets);
          if (!routes.has(type)) routes.set(type, targets.map(formatTarget));
        } catch (error) {
          counter.add({ problems: 1 });
          const reason = `the event cannot be pseudonymised: ${messageOf(error)}`;
          onProblem({ where: candidate.where, reason });
        }
      }
    }
  }
  return { counts: counter.counts(), routes: Object.fromEntries(routes) };
}
