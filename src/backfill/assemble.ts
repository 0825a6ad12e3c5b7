import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { errorCode, syncFolder, writeDurably } from '../lib/durable.ts';
import type { Checkpoint } from './checkpoint.ts';
import { MEAL_TABLES } from './pull-meals.ts';
import { tasksOf, type BackfillPlan } from './plan.ts';

/** What became of one user with one provider; a line of `_backfill.ndjson`. */
export interface Outcome {
  readonly user_id: string;
  readonly provider: string | null;
  readonly status: 'done' | 'failed';
  readonly meals: number;
  readonly meal_items: number;
  readonly rejects: number;
  readonly error: string | null;
}

const OUTCOMES = '_backfill.ndjson';

/**
 * Puts the tasks' rows together in the order of the plan, so that the files do not tell in which order, or in how many
 * runs, the tasks were done. Each file appears under its name when it is complete.
 * @returns the paths written
 */
export async function assemble(
  output: string,
  plan: BackfillPlan,
  checkpoint: Checkpoint,
  outcomes: readonly Outcome[],
): Promise<string[]> {
  const paths: string[] = [];
  for (const table of [...MEAL_TABLES, '_rejects']) {
    const path = join(output, `${table}.ndjson`);
    const bytes = await concatenate(`${path}.part`, partsOf(plan, checkpoint, `${table}.ndjson`));
    await rename(`${path}.part`, path);
    if (bytes > 0 || table !== '_rejects') paths.push(path);
  }
  await writeDurably(output, OUTCOMES, outcomes.map((outcome) => `${JSON.stringify(outcome)}\n`).join(''));
  await syncFolder(output);
  return [...paths, join(output, OUTCOMES)];
}

function* partsOf(plan: BackfillPlan, checkpoint: Checkpoint, name: string): Generator<string> {
  for (const { index } of tasksOf(plan)) yield join(checkpoint.taskFolder(index), name);
}

async function concatenate(path: string, parts: Iterable<string>): Promise<number> {
  const target = createWriteStream(path);
  for (const part of parts) {
    const source = createReadStream(part);
    try {
      for await (const chunk of source) {
        if (!target.write(chunk)) await once(target, 'drain');
      }
    } catch (error) {
      // A task that failed for good, or had nothing to reject, left no such file.
      if (errorCode(error) !== 'ENOENT') throw error;
    }
  }
  target.end();
  await finished(target);
  const handle = await open(path);
  await handle.sync();
  await handle.close();
  return target.bytesWritten;
}
