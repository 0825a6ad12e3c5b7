import type { Handling } from '../../core/event.ts';
import { formatTarget, type Target } from '../../core/route.ts';

/** What travels with an event in a topic, where no journal remembers the routes of its time: its targets, and what they go without. */
export function addressed(handling: Handling, targets: readonly Target[]): Handling {
  const without = targets.flatMap((target) =>
    target.redactions === undefined ? [] : [[formatTarget(target), target.redactions] as const],
  );
  return {
    ...handling,
    only: targets.map(formatTarget),
    ...(without.length === 0 ? {} : { without: Object.fromEntries(without) }),
  };
}
