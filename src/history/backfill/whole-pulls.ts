import type { Outcome, Result } from './outcomes.ts';
import { pullKeyOf, tasksOf, type BackfillPlan, type Task } from './plan.ts';

/**
 * A pull that has all that the service had: every page of every window was read, and the service says that it had got everything
 * itself. An item of the range from before `began_at` that is not in the table's file is gone.
 */
export interface WholePull {
  readonly user_id: string;
  readonly resource: string;
  /** The table of the items. */
  readonly table: string;
  /** null for all providers. */
  readonly provider: string | null;
  /** Days, both inclusive; null for a resource without a range. */
  readonly since: string | null;
  readonly until: string | null;
  /** ISO 8601: `_loaded_at` of its rows, or the time of its first request where that is earlier. */
  readonly began_at: string;
  readonly items: number;
}

export interface Settling {
  /** True for a pull that the service does not call complete now. */
  readonly isUnsettled: (task: Task) => boolean;
  /** True when an empty list counts as whole. */
  readonly acceptsEmpty: boolean;
  /** `_loaded_at` of every row. */
  readonly loadedAt: string;
}

/** The whole pulls of a run, in the order of the plan. Rejected rows make a pull incomplete. */
export function wholePulls(
  plan: BackfillPlan,
  outcomes: ReadonlyMap<string, Outcome>,
  results: ReadonlyMap<number, Result>,
  { isUnsettled, acceptsEmpty, loadedAt }: Settling,
): WholePull[] {
  const pulls: WholePull[] = [];
  for (const [key, tasks] of Map.groupBy(tasksOf(plan), pullKeyOf)) {
    const outcome = outcomes.get(key);
    const [task] = tasks;
    if (task === undefined || outcome?.status !== 'done' || outcome.kept === true) continue;
    const began = tasks.flatMap(({ index }) => beganAt(results.get(index)) ?? []);
    const items = outcome.rows[task.resource.table] ?? 0;
    if (began.length < tasks.length || (outcome.rows['rejects'] ?? 0) > 0 || isUnsettled(task)) continue;
    if (items === 0 && !acceptsEmpty) continue;
    const { user: user_id, provider, resource } = task;
    const { name, table, list, range } = resource;
    // One object, where each provider may have one.
    if (list === '' && provider === null) continue;
    const days = range === 'none' ? { since: null, until: null } : { since: plan.since, until: plan.until };
    const began_at = began.reduce((first, at) => (at < first ? at : first), loadedAt);
    pulls.push({ user_id, resource: name, table, provider, ...days, began_at, items });
  }
  return pulls;
}

/** null when the task has not fetched all. */
function beganAt(result: Result | undefined): string | null {
  if (result === undefined || 'status' in result || result.settled !== true) return null;
  return result.began_at ?? null;
}
