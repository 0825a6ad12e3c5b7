import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { errorCode, readPlain, syncFolder } from '../../lib/durable.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { cutLines } from '../../lib/lines.ts';
import { NewFile } from '../../lib/new-file.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import type { Checkpoint } from './checkpoint.ts';
import {
  countRows,
  filesOf,
  outcomesIn,
  type Kept,
  type Outcome,
  type Result,
  type Rows,
} from './outcomes.ts';
import { pullKeyOf, tasksOf, type BackfillPlan } from './plan.ts';

/** Says which rows are kept; once it is there, the files of the earlier run are not read again. */
const KEPT = 'kept.json';
const LINE_FEED = Buffer.from('\n');

/**
 * Copies, from the files in the output folder, the rows of users of whom this run could not fetch all, and not more than is there,
 * and of whom the service lists nothing: a service in trouble must not empty good files. Done once for a run, before it changes these files.
 * @throws MillraceError rows_missing when the files lack rows
 */
export async function keepRows(
  output: string,
  plan: BackfillPlan,
  checkpoint: Checkpoint,
  results: ReadonlyMap<number, Result>,
  acceptsEmpty: boolean,
): Promise<Kept> {
  const folder = checkpoint.runFolder;
  const known = readState(folder, KEPT) as Readonly<Record<string, Rows>> | null;
  if (known !== null) return new Map(Object.entries(known).map(([index, rows]) => [Number(index), rows]));
  const before = outcomesIn(output) ?? [];
  const { kept, owners } = chosen(before, fetchedOf(plan, results, acceptsEmpty));
  if (kept.size > 0)
    for (const { name, column } of filesOf(plan)) {
      const pieces = before.map(({ rows }, at) => ({
        rows: rows[column] ?? 0,
        owner: owners[at] as number | null,
      }));
      await copyRows(join(output, `${name}.ndjson`), pieces, (owner) => keptFile(checkpoint, owner, name));
    }
  await writeState(folder, KEPT, Object.fromEntries(kept));
  return kept;
}

/** File of the kept rows of a table; there is none without rows. */
export function keptFile(checkpoint: Checkpoint, owner: number, name: string): string {
  return join(checkpoint.taskFolder(owner), `kept-${name}.ndjson`);
}

/** What a run has fetched of a resource of a user and provider. */
interface Fetched {
  /** Their first task. */
  readonly index: number;
  /** Without rejects. */
  readonly rows: number;
  /** True when all of it was fetched, and is to be taken. */
  readonly isWhole: boolean;
}

function fetchedOf(
  plan: BackfillPlan,
  results: ReadonlyMap<number, Result>,
  acceptsEmpty: boolean,
): Map<string, Fetched> {
  const all = new Map<string, Fetched>();
  for (const task of tasksOf(plan)) {
    const key = pullKeyOf(task);
    const { index, rows, isWhole } = all.get(key) ?? { index: task.index, rows: 0, isWhole: true };
    const result = results.get(task.index);
    const has = result !== undefined && 'rows' in result;
    all.set(key, { index, rows: rows + (has ? countRows(result.rows) : 0), isWhole: isWhole && has });
  }
  if (!acceptsEmpty)
    for (const [key, one] of all) if (one.rows === 0) all.set(key, { ...one, isWhole: false });
  return all;
}

/** @returns the rows to keep, and for each line of `before` the task that its rows are kept for */
function chosen(
  before: readonly Outcome[],
  fetched: ReadonlyMap<string, Fetched>,
): { readonly kept: Map<number, Rows>; readonly owners: readonly (number | null)[] } {
  const kept = new Map<number, Record<string, number>>();
  const wanting = new Map(
    [...fetched.values()].filter(({ isWhole }) => !isWhole).map((one) => [one.index, one]),
  );
  const owners = before.map((line) => {
    const { user_id: user, provider, resource: name } = line;
    const pull = { user, resource: { name } };
    // This run may fetch from all providers at once what was fetched from each.
    const owner = (
      fetched.get(pullKeyOf({ ...pull, provider })) ?? fetched.get(pullKeyOf({ ...pull, provider: null }))
    )?.index;
    if (owner === undefined || !wanting.has(owner)) return null;
    const sum = getOrMake(kept, owner, (): Record<string, number> => ({}));
    for (const [column, rows] of Object.entries(line.rows)) sum[column] = (sum[column] ?? 0) + rows;
    return owner;
  });
  for (const [owner, rows] of kept) {
    const count = countRows(rows);
    if (count === 0 || count < (wanting.get(owner)?.rows ?? 0)) kept.delete(owner);
  }
  return { kept, owners: owners.map((owner) => (owner !== null && kept.has(owner) ? owner : null)) };
}

/** Lines of a file that follow one another, and the task that they are kept for. */
interface Piece {
  readonly rows: number;
  readonly owner: number | null;
}

/**
 * Copies the pieces of a file that have an owner. The pieces of one owner follow one another.
 * @throws MillraceError rows_missing when the file has another number of lines
 */
async function copyRows(
  path: string,
  pieces: readonly Piece[],
  fileOf: (owner: number) => string,
): Promise<void> {
  const owners = ownersOfLines(pieces);
  let lines = 0;
  let current: number | null = null;
  let file: NewFile | null = null;
  const ownerOfNext = (): number | null => {
    lines += 1;
    return owners.next().value ?? null;
  };
  try {
    for await (const cut of cutLines(readIfAny(path)))
      for (const [owner, rows] of Map.groupBy(cut, ownerOfNext)) {
        if (owner === null) continue;
        if (owner !== current) {
          await finish(file);
          await mkdir(dirname(fileOf(owner)), { recursive: true });
          file = await NewFile.create(fileOf(owner));
          current = owner;
        }
        await file?.write(
          Buffer.concat(rows.flatMap(({ bytes }) => (bytes === null ? [] : [bytes, LINE_FEED]))),
        );
      }
    await finish(file);
  } catch (error) {
    await file?.abandon();
    throw error;
  }
  const wanted = pieces.reduce((sum, { rows }) => sum + rows, 0);
  if (lines === wanted) return;
  const detail = `${path} has ${lines} rows, and ${wanted} by the backfill before`;
  throw new MillraceError(
    'rows_missing',
    `${detail}: the rows of users who failed now cannot be kept; use another --out, or --replace`,
  );
}

function* ownersOfLines(pieces: readonly Piece[]): Generator<number | null, null> {
  for (const { rows, owner } of pieces) for (let row = 0; row < rows; row += 1) yield owner;
  return null;
}

/** Makes a file and its name durable. */
async function finish(file: NewFile | null): Promise<void> {
  if (file === null) return;
  await file.finish();
  await syncFolder(dirname(file.path));
}

async function* readIfAny(path: string): AsyncGenerator<Buffer> {
  try {
    yield* readPlain(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}
