import type { Without } from './checkpoint.ts';
import { resourcesIn, tablesIn, type BackfillPlan } from './plan.ts';
import type { TaskResult } from './fetch-task.ts';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../../lib/parsed.ts';
import { ERASED_USER } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import { errorCode, readIfThere, readPlain } from '../../lib/durable.ts';
import { countLines } from '../../lib/lines.ts';

/** The outcome of a resource of one user with one provider; a line of `_backfill.ndjson`, in which the rows are members. */
export interface Outcome {
  readonly user_id: string;
  readonly resource: string;
  readonly provider: string | null;
  /** Days, both inclusive. */
  readonly since: string;
  readonly until: string;
  readonly status: 'done' | Without['status'];
  /** By table, and `rejects`. */
  readonly rows: Rows;
  readonly error: string | null;
  /** The rows are those that were in the files before: this run has fetched less. */
  readonly kept?: true;
}

/** The result of a task with rows in its folder, or why it has none. */
export type Result = TaskResult | Without;

/** Numbers of rows by table, and `rejects`. */
export type Rows = Readonly<Record<string, number>>;

/** The files of a plan, with the names of their numbers of rows in an outcome. */
export function filesOf(plan: BackfillPlan): { readonly name: string; readonly column: string }[] {
  const tables = tablesIn(plan).map((name) => ({ name, column: name }));
  return [...tables, { name: '_rejects', column: 'rejects' }];
}

/** The rows of a task, as an outcome counts them. */
export function rowsOf({ rows, rejects }: TaskResult): Rows {
  return { ...rows, rejects };
}

/** All rows, without rejects. */
export function countRows(rows: Rows): number {
  return Object.entries(rows).reduce((sum, [column, count]) => (column === 'rejects' ? sum : sum + count), 0);
}

/** File of the outcomes, written after the tables. */
export const OUTCOMES = '_backfill.ndjson';

/** File that names the pulls that are whole, written after the tables. */
export const PULLS = '_pulls.ndjson';

/** Rows kept from the files of an earlier run. */
export interface Kept {
  /** Their name in the segments. */
  readonly as: string;
  /** By the first task of their user and provider. */
  readonly rows: ReadonlyMap<number, Rows>;
}

/** What a run fetches. */
export interface Fetches {
  readonly plan: BackfillPlan;
  /** True when the users are all that the service has: others were deleted there. */
  readonly isOfAll: boolean;
  readonly isErased: (user: string) => boolean;
}

/**
 * @throws MillraceError usage when the files in the output folder have users, providers or days that the run does not fetch, or do not
 * say whose rows they have
 */
export function refuseLoss(output: string, fetches: Fetches): void {
  const outcomes = outcomesIn(output) ?? [];
  const unknown = outcomes.length === 0 ? fileWithRows(output, filesOf(fetches.plan)) : undefined;
  if (unknown !== undefined)
    throw new MillraceError(
      'usage',
      `${unknown} has rows, and ${OUTCOMES}, which says whose they are, is gone or empty: put it back, use another --out, or --replace`,
    );
  const lost = lossIn(outcomes, fetches);
  if (lost === null) return;
  throw new MillraceError(
    'usage',
    `${output} holds a finished backfill ${lost}, which this one does not fetch, and its files would be replaced; ` +
      'use another --out, or --replace',
  );
}

/** @throws MillraceError rows_missing when a file of a finished backfill is missing, or has fewer rows than its outcomes say */
export async function checkFiles(output: string, outcomes: readonly Outcome[]): Promise<void> {
  const pulls = statSync(join(output, PULLS), { throwIfNoEntry: false });
  if (pulls === undefined) throw missing(join(output, PULLS), 'is not there');
  if (outcomes.length === 0 && pulls.size > 0) throw missing(join(output, OUTCOMES), 'is empty');
  const wanted = new Map<string, number>();
  for (const { rows } of outcomes)
    for (const [column, count] of Object.entries(rows)) wanted.set(column, (wanted.get(column) ?? 0) + count);
  for (const [column, count] of wanted) {
    const path = join(output, `${column === 'rejects' ? '_rejects' : column}.ndjson`);
    let lines = 0;
    for await (const bytes of readIfAny(path)) lines += countLines(bytes);
    if (lines < count) throw missing(path, `has ${lines} rows, and ${count} by ${OUTCOMES}`);
  }
}

function fileWithRows(output: string, files: readonly { readonly name: string }[]): string | undefined {
  return files
    .map(({ name }) => join(output, `${name}.ndjson`))
    .find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0);
}

function missing(path: string, has: string): MillraceError {
  return new MillraceError('rows_missing', `${path} ${has}: fetch them again without --resume`);
}

/** The bytes of a file; none when there is none. */
export async function* readIfAny(path: string): AsyncGenerator<Buffer> {
  try {
    yield* readPlain(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

/** Whether the files are complete, without failures, and have the days and users that are named. */
export function isFinished(
  outcomes: readonly Outcome[],
  named: {
    readonly since: string | undefined;
    readonly until: string | undefined;
    readonly user: readonly string[] | undefined;
  },
): boolean {
  const { since, until } = outcomes[0] ?? {};
  const users = new Set(outcomes.map(({ user_id: user }) => user));
  return (
    outcomes.every(({ status }) => status !== 'failed' && status !== 'not_pulled') &&
    isSame(named.since, since) &&
    isSame(named.until, until) &&
    (named.user ?? []).every((user) => users.has(user.toLowerCase()))
  );
}

/** True also when no day is named, or there is no outcome. */
function isSame(named: string | undefined, was: string | undefined): boolean {
  return named === undefined || was === undefined || named === was;
}

function lossIn(outcomes: readonly Outcome[], { plan, isOfAll, isErased }: Fetches): string | null {
  const [users, providers] = [new Set(plan.users), new Set(plan.providers)];
  const held = outcomes.filter(
    ({ user_id: user, rows }) => countRows(rows) > 0 && user !== ERASED_USER && !isErased(user),
  );
  const others = isOfAll ? 0 : new Set(held.map((one) => one.user_id)).difference(users).size;
  if (others > 0) return `of ${others} other ${others === 1 ? 'user' : 'users'}`;
  const resources = new Set(resourcesIn(plan).map(({ name }) => name));
  for (const { resource, provider, since, until } of held) {
    if (!resources.has(resource)) return `of other resources (${resource})`;
    if (providers.size > 0 && provider === null) return 'of all providers';
    if (providers.size > 0 && !providers.has(provider ?? '')) return `of other providers (${provider})`;
    if (since < plan.since) return `from ${since}`;
    if (until > plan.until) return `until ${until}`;
  }
  return null;
}

/** The outcomes in an output folder; null when no backfill has ended there. @throws MillraceError usage */
export function outcomesIn(output: string): Outcome[] | null {
  const path = join(output, OUTCOMES);
  const text = readIfThere(path);
  if (text === null) return null;
  try {
    return parseOutcomes(text);
  } catch (error) {
    throw new MillraceError('usage', `${path} is not of a backfill; use another --out, or --replace`, {
      cause: error,
    });
  }
}

/** Lines of `_backfill.ndjson`. @throws SyntaxError */
export function parseOutcomes(text: string): Outcome[] {
  const lines = text.split('\n').filter(Boolean);
  return lines.map((line) => {
    const value: unknown = JSON.parse(line);
    // The newest members.
    if (!isRecord(value) || typeof value['since'] !== 'string' || typeof value['until'] !== 'string')
      throw new SyntaxError('not a line of a backfill, or of another format');
    return outcomeOf(value);
  });
}

/** Members of a line that are numbers are rows. Lines without a resource are of meals. */
function outcomeOf(line: Readonly<Record<string, unknown>>): Outcome {
  const entries = Object.entries(line);
  const rows = Object.fromEntries(entries.filter(([, value]) => typeof value === 'number'));
  const others = Object.fromEntries(entries.filter(([, value]) => typeof value !== 'number'));
  return { resource: 'meal', ...others, rows } as unknown as Outcome;
}

/** A line of `_backfill.ndjson`. */
export function lineOf({ rows, error, kept, ...outcome }: Outcome): string {
  return `${JSON.stringify({ ...outcome, ...rows, error, kept })}\n`;
}
