import { messageOf } from '../core/errors.ts';
import { formatTarget } from '../core/route.ts';
import { inSight, readAhead } from '../lib/read-ahead.ts';
import { AHEAD, IN_SIGHT } from './ahead.ts';
import { Counter, type Counts } from './counts.ts';
import type { ReplayOptions } from './replay.ts';
import { addTallies, type Tally, type Unit } from './unit.ts';

const A_PROBLEM: Tally = { read: 0, erased: 0, problems: 1, bytes: 0 };

export interface DryRun {
  readonly counts: Counts;
  /** Targets by type. */
  readonly routes: Readonly<Record<string, readonly string[]>>;
}

/** Reads everything a replay would read, and counts what it would send, by type and destination. */
export async function dryRun(
  units: AsyncIterable<Unit>,
  options: Pick<ReplayOptions, 'read' | 'expect' | 'destinations' | 'pseudonymiser' | 'onProblem'>,
  signal: AbortSignal,
): Promise<DryRun> {
  const { read, expect = () => undefined, destinations, pseudonymiser, onProblem } = options;
  const counter = new Counter();
  const routes = new Map<string, readonly string[]>();
  const ahead = readAhead(inSight(units, IN_SIGHT, expect), {
    ...AHEAD,
    open: (unit) => read(unit, 0, signal),
    isEarly: ({ kind }) => kind === 'file',
  });
  for await (const [, steps] of ahead) {
    for await (const { tally, found, problems } of steps) {
      counter.tally = addTallies(counter.tally, tally);
      for (const problem of problems) onProblem(problem);
      for (const candidate of found) {
        if (!destinations.wants(candidate)) continue;
        try {
          const { type } = pseudonymiser(candidate.event);
          const targets = destinations.targetsFor(type);
          counter.event(type, targets);
          if (!routes.has(type)) routes.set(type, targets.map(formatTarget));
        } catch (error) {
          counter.tally = addTallies(counter.tally, A_PROBLEM);
          const reason = `the event cannot be pseudonymised: ${messageOf(error)}`;
          onProblem({ where: candidate.where, reason });
        }
      }
    }
  }
  return { counts: counter.counts(), routes: Object.fromEntries(routes) };
}
