import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { errorCode, readPlain, syncFolder } from '../lib/durable.ts';
import { fillNew, NewFile, writeDurably } from '../lib/new-file.ts';
import type { Checkpoint, Without } from './checkpoint.ts';
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
}

/** What a task has come to: its rows are in its folder, or there are none. */
export type Result = TaskResult | Without;

/** Rows of each file, as they were counted in the tasks' files. */
type Rows = Pick<Outcome, 'meals' | 'meal_items' | 'rejects'>;

/** The files, and what a task says of the rows it has put into its own. */
const FILES: readonly {
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
const LINE_FEED = 10;

/**
 * Puts the tasks' rows together in the order of the plan, so that the files do not tell in which order, or in how many
 * runs, the tasks were done. Each file appears under its name when it is complete, with every row that a task has said
 * to be there.
 * @throws MillraceError rows_missing
 */
export async function assemble(
  output: string,
  plan: BackfillPlan,
  checkpoint: Checkpoint,
  results: ReadonlyMap<number, Result>,
): Promise<{ readonly outcomes: readonly Outcome[]; readonly files: readonly string[] }> {
  const outcomes = new Outcomes(plan, results);
  const files: string[] = [];
  for (const { name, column, said } of FILES) {
    const path = join(output, `${name}.ndjson`);
    const target = await fillNew(NewFile.create(`${path}.part`), async (file) => {
      for (const task of tasksOf(plan)) {
        const result = results.get(task.index);
        if (result === undefined || 'status' in result) continue;
        const part = join(checkpoint.taskFolder(task.index), `${name}.ndjson`);
        // What had nothing to reject has no such file.
        if (name === '_rejects' && result.rejects === 0) continue;
        const rows = await append(file, part);
        if (rows !== result[said]) throw missing(part, rows, Number(result[said]), checkpoint);
        outcomes.add(task, column, rows);
      }
    });
    await rename(`${path}.part`, path);
    if (target.bytes > 0 || name !== '_rejects') files.push(path);
  }
  const lines = outcomes.all.map((outcome) => `${JSON.stringify(outcome)}\n`);
  await writeDurably(output, OUTCOMES, lines.join(''));
  await syncFolder(output);
  return { outcomes: outcomes.all, files: [...files, join(output, OUTCOMES)] };
}

function missing(part: string, rows: number | null, said: number, { folder }: Checkpoint): MillraceError {
  const what = rows === null ? 'is not there' : `has ${rows} rows`;
  return new MillraceError(
    'rows_missing',
    `${part} ${what}, but ${said} were fetched; remove ${folder} to fetch all of them again`,
  );
}

/** Adds all of a file. @returns its lines; null when there is no such file */
async function append(target: NewFile, path: string): Promise<number | null> {
  let lines = 0;
  try {
    for await (const chunk of readPlain(path)) {
      await target.write(chunk);
      for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) lines += 1;
    }
    return lines;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** An outcome for each user and provider, over all windows. */
class Outcomes {
  readonly #byKey = new Map<string, Outcome>();

  constructor(plan: BackfillPlan, results: ReadonlyMap<number, Result>) {
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
  }

  get all(): readonly Outcome[] {
    return [...this.#byKey.values()];
  }

  add(task: Task, column: keyof Rows, rows: number): void {
    const outcome = this.#byKey.get(keyOf(task));
    if (outcome !== undefined) this.#byKey.set(keyOf(task), { ...outcome, [column]: outcome[column] + rows });
  }
}

function keyOf({ user, provider }: Task): string {
  return `${user} ${provider ?? ''}`;
}
