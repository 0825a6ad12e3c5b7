import type { Without } from './checkpoint.ts';
import { tasksOf, type BackfillPlan, type Task } from './plan.ts';
import type { TaskResult } from './pull-meals.ts';

/** What became of one user with one provider; a line of `_backfill.ndjson`. */
export interface Outcome {
  readonly user_id: string;
  readonly provider: string | null;
  /** Days that were asked for, both inclusive. */
  readonly since: string;
  readonly until: string;
  readonly status: 'done' | Without['status'];
  readonly meals: number;
  readonly meal_items: number;
  readonly rejects: number;
  readonly error: string | null;
  /** The rows are those that were in the files before: what was fetched now is less. */
  readonly kept?: true;
}

/** What a task has come to: its rows are in its folder, or there are none. */
export type Result = TaskResult | Without;

/** Rows of each file, as they were counted in the tasks' files. */
export type Rows = Pick<Outcome, 'meals' | 'meal_items' | 'rejects'>;

/** The files, and what a task says of the rows it has put into its own. */
export const FILES: readonly {
  readonly name: string;
  readonly column: keyof Rows;
  readonly said: keyof TaskResult;
}[] = [
  { name: 'meals', column: 'meals', said: 'meals' },
  { name: 'meal_items', column: 'meal_items', said: 'items' },
  { name: '_rejects', column: 'rejects', said: 'rejects' },
];
/** What became of each user; there when all is. */
export const OUTCOMES = '_backfill.ndjson';

/** Rows of the files of an earlier run, by the first task of the user and provider for whom they are kept. */
export type Kept = ReadonlyMap<number, Rows>;

/** An outcome for each user and provider, over all windows. */
export class Outcomes {
  readonly #byKey = new Map<string, Outcome>();

  constructor(plan: BackfillPlan, results: ReadonlyMap<number, Result>, kept: Kept) {
    const { since, until } = plan;
    for (const task of tasksOf(plan)) {
      const { index, user, provider } = task;
      const none = { status: 'done', meals: 0, meal_items: 0, rejects: 0, error: null } as const;
      const known = this.#byKey.get(keyOf(task)) ?? { user_id: user, provider, since, until, ...none };
      const result = results.get(index) ?? { status: 'failed', reason: 'was not done' };
      const outcome =
        'status' in result && known.status === 'done'
          ? { ...known, status: result.status, error: result.reason }
          : known;
      this.#byKey.set(keyOf(task), outcome);
    }
    for (const task of tasksOf(plan)) {
      const outcome = this.#byKey.get(keyOf(task));
      // Another try may have fetched it all.
      if (outcome !== undefined && outcome.status !== 'done' && kept.has(task.index))
        this.#byKey.set(keyOf(task), { ...outcome, kept: true });
    }
  }

  isKept(task: Task): boolean {
    return this.#byKey.get(keyOf(task))?.kept === true;
  }

  get all(): readonly Outcome[] {
    return [...this.#byKey.values()];
  }

  add(task: Task, column: keyof Rows, rows: number): void {
    const outcome = this.#byKey.get(keyOf(task));
    if (outcome !== undefined) this.#byKey.set(keyOf(task), { ...outcome, [column]: outcome[column] + rows });
  }
}

export function keyOf({ user, provider }: Pick<Task, 'user' | 'provider'>): string {
  return `${user} ${provider ?? ''}`;
}
