import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../../lib/durable.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { countLines } from '../../lib/lines.ts';
import { writeDurably } from '../../lib/new-file.ts';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import type { Segments } from './segments.ts';
import { tablesOf } from '../resources.ts';
import {
  countRows,
  filesOf,
  lineOf,
  OUTCOMES,
  PULLS,
  rowsOf,
  type Kept,
  type Outcome,
  type Result,
} from './outcomes.ts';
import { pullKeyOf, tasksOf, type BackfillPlan } from './plan.ts';
import { wholePulls, type Settling } from './whole-pulls.ts';

/**
 * Joins the tasks' rows in the order of the plan, whatever the order in which the tasks were done. A file gets its name once it is
 * complete, with all rows that the tasks have counted.
 * @throws MillraceError rows_missing
 */
export async function assemble(
  output: string,
  plan: BackfillPlan,
  segments: Segments,
  { results, kept, ...settling }: AssembledResults,
) {
  const { outcomes, emptied } = outcomesOf(plan, { results, kept, ...settling });
  // The lines of an earlier run say nothing of the rows of this one.
  await rm(join(output, PULLS), { force: true });
  await syncFolder(output);
  const names = filesOf(plan).map(({ name }) => name);
  const { paths } = await RowFiles.fill(output, names, async (files) => {
    for (const task of tasksOf(plan)) {
      const outcome = outcomes.get(pullKeyOf(task));
      const result = results.get(task.index);
      const isKept = outcome?.kept === true;
      const fetched = result !== undefined && 'rows' in result ? rowsOf(result) : undefined;
      const rows = isKept ? kept.rows.get(task.index) : fetched;
      if (outcome === undefined || rows === undefined) continue;
      let lines = 0;
      const take = (name: string, some: Buffer): Promise<void> => {
        lines += countLines(some);
        return files.write(name, some);
      };
      await segments.read(task.index, take, isKept ? kept.as : undefined);
      for (const [column, count] of Object.entries(rows)) {
        outcome.rows[column] = (outcome.rows[column] ?? 0) + count;
        lines -= count;
      }
      if (lines !== 0) throw segments.lacking(`lacks ${-lines} rows of ${task.user}`);
    }
  });
  const all = [...outcomes.values()];
  await writeDurably(output, OUTCOMES, all.map(lineOf).join(''));
  const pulls = wholePulls(plan, outcomes, results, settling);
  // Also without any: a folder that lacks it is not a finished one.
  await writeDurably(output, PULLS, pulls.map((pull) => `${JSON.stringify(pull)}\n`).join(''));
  await syncFolder(output);
  const hasRejects = all.some(({ rows }) => (rows['rejects'] ?? 0) > 0);
  const written = paths.filter((_, at) => hasRejects || names[at] !== '_rejects');
  return { outcomes: all, emptied, files: [...written, join(output, OUTCOMES), join(output, PULLS)] };
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
    const rows = kept.rows.get(task.index);
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
