import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { errorCode, readPlain, syncFolder } from '../../lib/durable.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { fillNew, NewFile, writeDurably } from '../../lib/new-file.ts';
import type { Checkpoint } from './checkpoint.ts';
import { keptFile } from './keep.ts';
import { FILES, OUTCOMES, type Kept, type Outcome, type Result } from './outcomes.ts';
import { keyOf, tasksOf, type BackfillPlan } from './plan.ts';

const LINE_FEED = 10;

/**
 * Joins the tasks' rows in the order of the plan, whatever the order in which the tasks were done. A file gets its name once it is
 * complete, with all rows that the tasks have counted.
 * @throws MillraceError rows_missing
 */
export async function assemble(
  output: string,
  plan: BackfillPlan,
  checkpoint: Checkpoint,
  { results, kept }: { readonly results: ReadonlyMap<number, Result>; readonly kept: Kept },
): Promise<{ readonly outcomes: readonly Outcome[]; readonly files: readonly string[] }> {
  const outcomes = outcomesOf(plan, results, kept);
  const files: string[] = [];
  for (const { name, column, said } of FILES) {
    const path = join(output, `${name}.ndjson`);
    const target = await fillNew(NewFile.create(`${path}.part`), async (file) => {
      const take = async (outcome: Counted, part: string, wanted: number): Promise<void> => {
        const rows = await append(file, part);
        if (rows !== wanted) throw missing(part, rows, wanted, checkpoint);
        outcome[column] += rows;
      };
      for (const task of tasksOf(plan)) {
        const { index } = task;
        const outcome = outcomes.get(keyOf(task));
        const result = results.get(index);
        if (outcome?.kept === true) {
          const before = kept.get(index)?.[column] ?? 0;
          if (before > 0) await take(outcome, keptFile(checkpoint, index, name), before);
        } else if (outcome !== undefined && result !== undefined && !('status' in result)) {
          // Without rejects there is no such file.
          if (name !== '_rejects' || result.rejects > 0)
            await take(outcome, join(checkpoint.taskFolder(index), `${name}.ndjson`), result[said]);
        }
      }
    });
    await rename(`${path}.part`, path);
    if (target.bytes > 0 || name !== '_rejects') files.push(path);
  }
  const all = [...outcomes.values()];
  await writeDurably(output, OUTCOMES, all.map((outcome) => `${JSON.stringify(outcome)}\n`).join(''));
  await syncFolder(output);
  return { outcomes: all, files: [...files, join(output, OUTCOMES)] };
}

/** An outcome whose rows are being counted. */
type Counted = { -readonly [Field in keyof Outcome]: Outcome[Field] };

/** The outcome of each user and provider over all windows, without its rows; in the order of the plan. */
function outcomesOf(
  plan: BackfillPlan,
  results: ReadonlyMap<number, Result>,
  kept: Kept,
): ReadonlyMap<string, Counted> {
  const { since, until } = plan;
  const outcomes = new Map<string, Counted>();
  for (const task of tasksOf(plan)) {
    const { user: user_id, provider } = task;
    const none = { status: 'done', meals: 0, meal_items: 0, rejects: 0, error: null } as const;
    const outcome = getOrMake(outcomes, keyOf(task), () => ({ user_id, provider, since, until, ...none }));
    const result = results.get(task.index) ?? { status: 'failed', reason: 'was not done' };
    if (!('status' in result) || outcome.status !== 'done') continue;
    outcome.status = result.status;
    outcome.error = result.reason;
  }
  for (const task of tasksOf(plan)) {
    const outcome = outcomes.get(keyOf(task));
    // Rows that an earlier try has fetched are not replaced.
    if (outcome !== undefined && outcome.status !== 'done' && kept.has(task.index)) outcome.kept = true;
  }
  return outcomes;
}

function missing(part: string, rows: number | null, said: number, { folder }: Checkpoint): MillraceError {
  const what = rows === null ? 'is not there' : `has ${rows} rows`;
  return new MillraceError(
    'rows_missing',
    `${part} ${what}, but ${said} were fetched; remove ${folder} to fetch all of them again`,
  );
}

/** Appends a file. @returns its lines; null when there is no such file */
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
