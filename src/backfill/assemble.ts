import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { errorCode, readPlain, syncFolder } from '../lib/durable.ts';
import { fillNew, NewFile, writeDurably } from '../lib/new-file.ts';
import type { Checkpoint } from './checkpoint.ts';
import { keptFile } from './keep.ts';
import { FILES, OUTCOMES, Outcomes, type Kept, type Outcome, type Result } from './outcomes.ts';
import { tasksOf, type BackfillPlan } from './plan.ts';

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
  { results, kept }: { readonly results: ReadonlyMap<number, Result>; readonly kept: Kept },
): Promise<{ readonly outcomes: readonly Outcome[]; readonly files: readonly string[] }> {
  const outcomes = new Outcomes(plan, results, kept);
  const files: string[] = [];
  for (const { name, column, said } of FILES) {
    const path = join(output, `${name}.ndjson`);
    const target = await fillNew(NewFile.create(`${path}.part`), async (file) => {
      for (const task of tasksOf(plan)) {
        const before = kept.get(task.index);
        if (before !== undefined && outcomes.isKept(task) && before[column] > 0) {
          const part = keptFile(checkpoint, task.index, name);
          const rows = await append(file, part);
          if (rows !== before[column]) throw missing(part, rows, before[column], checkpoint);
          outcomes.add(task, column, rows);
        }
        const result = results.get(task.index);
        if (result === undefined || 'status' in result || outcomes.isKept(task)) continue;
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
