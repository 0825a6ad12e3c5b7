import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { cutLines } from '../../lib/lines.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import type { Checkpoint } from './checkpoint.ts';
import {
  countRows,
  filesOf,
  outcomesIn,
  readIfAny,
  type Kept,
  type Outcome,
  type Result,
  type Rows,
} from './outcomes.ts';
import type { Segments } from './segments.ts';
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
  { runFolder: folder }: Checkpoint,
  segments: Segments,
  results: ReadonlyMap<number, Result>,
  acceptsEmpty: boolean,
): Promise<Kept> {
  const known = readState(folder, KEPT) as { readonly as: string; readonly rows: [number, Rows][] } | null;
  if (known !== null) return { as: known.as, rows: new Map(known.rows) };
  // Another name for each attempt: what a run had copied before it was killed does not count.
  const as = randomUUID();
  const before = outcomesIn(output) ?? [];
  const { kept: rows, owners } = chosen(before, fetchedOf(plan, results, acceptsEmpty));
  if (rows.size > 0)
    for (const { name, column } of filesOf(plan)) {
      const pieces = before.map((line, at) => {
        const index = owners[at] ?? null;
        return { rows: line.rows[column] ?? 0, owner: index === null ? null : { index, user: line.user_id } };
      });
      await copyRows(join(output, `${name}.ndjson`), pieces, (owner, some) =>
        segments.append(owner, as, new Map([[name, some]])),
      );
    }
  await writeState(folder, KEPT, { as, rows: [...rows] });
  return { as, rows };
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

type Owner = Parameters<Segments['append']>[0];

/** Lines of a file that follow one another, and the task that they are kept for. */
interface Piece {
  readonly rows: number;
  readonly owner: Owner | null;
}

/**
 * Copies the pieces of a file that have an owner.
 * @throws MillraceError rows_missing when the file has another number of lines
 */
async function copyRows(
  path: string,
  pieces: readonly Piece[],
  copy: (owner: Owner, rows: Buffer[]) => Promise<void>,
): Promise<void> {
  const owners = ownersOfLines(pieces);
  let lines = 0;
  const ownerOfNext = (): Owner | null => {
    lines += 1;
    return owners.next().value ?? null;
  };
  for await (const cut of cutLines(readIfAny(path)))
    await Promise.all(
      Array.from(Map.groupBy(cut, ownerOfNext), async ([owner, rows]) => {
        if (owner !== null)
          await copy(owner, [
            Buffer.concat(rows.flatMap(({ bytes }) => (bytes === null ? [] : [bytes, LINE_FEED]))),
          ]);
      }),
    );
  const wanted = pieces.reduce((sum, { rows }) => sum + rows, 0);
  if (lines === wanted) return;
  const detail = `${path} has ${lines} rows, and ${wanted} by the backfill before`;
  throw new MillraceError(
    'rows_missing',
    `${detail}: the rows of users who failed now cannot be kept; use another --out, or --replace`,
  );
}

function* ownersOfLines(pieces: readonly Piece[]): Generator<Owner | null, null> {
  for (const { rows, owner } of pieces) for (let row = 0; row < rows; row += 1) yield owner;
  return null;
}
