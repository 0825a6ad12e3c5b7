import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { errorCode, readPlain, syncFolder } from '../../lib/durable.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { fillNew, NewFile, writeDurably } from '../../lib/new-file.ts';
import type { Checkpoint } from './checkpoint.ts';
import { keptFile } from './keep.ts';
import { tablesOf } from '../resources.ts';
import {
  countRows,
  filesOf,
  lineOf,
  OUTCOMES,
  rowsOf,
  type Kept,
  type Outcome,
  type Result,
} from './outcomes.ts';
import { pullKeyOf, tasksOf, type BackfillPlan } from './plan.ts';
import { PULLS, wholePulls, type Settling } from './whole-pulls.ts';

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
  { results, kept, ...settling }: AssembledResults,
): Promise<{
  readonly outcomes: readonly Outcome[];
  readonly emptied: number;
  readonly files: readonly string[];
}> {
  const { outcomes, emptied } = outcomesOf(plan, { results, kept, ...settling });
  const files: string[] = [];
  // The lines of an earlier run say nothing of the rows of this one.
  await rm(join(output, PULLS), { force: true });
  await syncFolder(output);
  for (const { name, column } of filesOf(plan)) {
    const path = join(output, `${name}.ndjson`);
    const target = await fillNew(NewFile.create(`${path}.part`), async (file) => {
      const take = async (outcome: Counted, part: string, wanted: number): Promise<void> => {
        const rows = await append(file, part);
        if (rows !== wanted) throw missing(part, rows, wanted, checkpoint);
        outcome.rows[column] = (outcome.rows[column] ?? 0) + rows;
      };
      for (const task of tasksOf(plan)) {
        const { index } = task;
        const outcome = outcomes.get(pullKeyOf(task));
        const result = results.get(index);
        if (outcome?.kept === true) {
          const before = kept.get(index)?.[column] ?? 0;
          if (before > 0) await take(outcome, keptFile(checkpoint, index, name), before);
        } else if (outcome !== undefined && result !== undefined && !('status' in result)) {
          const wanted = rowsOf(result)[column];
          // Other resources have other tables, and without rejects there is no such file.
          if (wanted !== undefined && (name !== '_rejects' || wanted > 0))
            await take(outcome, join(checkpoint.taskFolder(index), `${name}.ndjson`), wanted);
        }
      }
    });
    await rename(`${path}.part`, path);
    if (target.bytes > 0 || name !== '_rejects') files.push(path);
  }
  const all = [...outcomes.values()];
  await writeDurably(output, OUTCOMES, all.map(lineOf).join(''));
  files.push(join(output, OUTCOMES));
  const pulls = wholePulls(plan, outcomes, results, settling);
  // Also without any: a folder that lacks it is not a finished one.
  await writeDurably(output, PULLS, pulls.map((pull) => `${JSON.stringify(pull)}\n`).join(''));
  files.push(join(output, PULLS));
  await syncFolder(output);
  return { outcomes: all, emptied, files };
}

interface AssembledResults extends Settling {
  readonly results: ReadonlyMap<number, Result>;
  readonly kept: Kept;
}

/** An outcome whose rows are being counted. */
type Counted = { -readonly [Field in keyof Outcome]: Outcome[Field] } & { rows: Record<string, number> };

/** The outcome of each resource of a user and provider over all windows, without its rows; in the order of the plan. */
function outcomesOf(
  plan: BackfillPlan,
  { results, kept, acceptsEmpty }: AssembledResults,
): { readonly outcomes: ReadonlyMap<string, Counted>; readonly emptied: number } {
  const { since, until } = plan;
  const outcomes = new Map<string, Counted>();
  const fetched = new Map<string, number>();
  let emptied = 0;
  for (const task of tasksOf(plan)) {
    const { user: user_id, resource, provider } = task;
    const outcome = getOrMake(outcomes, pullKeyOf(task), () => ({
      user_id,
      resource: resource.name,
      provider,
      since,
      until,
      status: 'done' as const,
      rows: Object.fromEntries([...tablesOf(resource), 'rejects'].map((column) => [column, 0])),
      error: null,
    }));
    const result = results.get(task.index) ?? { status: 'failed', reason: 'was not done' };
    const rows = 'rows' in result ? countRows(result.rows) : 0;
    fetched.set(pullKeyOf(task), (fetched.get(pullKeyOf(task)) ?? 0) + rows);
    if (!('status' in result) || outcome.status !== 'done') continue;
    outcome.status = result.status;
    outcome.error = result.reason;
  }
  for (const task of tasksOf(plan)) {
    const outcome = outcomes.get(pullKeyOf(task));
    const rows = kept.get(task.index);
    if (outcome === undefined || rows === undefined) continue;
    const isEmptied = outcome.status === 'done' && !acceptsEmpty && fetched.get(pullKeyOf(task)) === 0;
    // Rows that an earlier try has fetched are not replaced.
    if (outcome.status === 'done' && !isEmptied) continue;
    outcome.kept = true;
    if (!isEmptied) continue;
    const count = countRows(rows);
    emptied += count;
    outcome.status = 'failed';
    outcome.error = `the service lists nothing now, and ${count} rows were there; --accept-empty removes them`;
  }
  return { outcomes, emptied };
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
