import type { Without } from './checkpoint.ts';
import type { BackfillPlan } from './plan.ts';
import type { TaskResult } from './fetch-task.ts';
import { join } from 'node:path';
import { isRecord } from '../../lib/is-record.ts';
import { ERASED_USER } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import { readIfThere } from '../../lib/durable.ts';

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
  readonly said: 'meals' | 'items' | 'rejects';
}[] = [
  { name: 'meals', column: 'meals', said: 'meals' },
  { name: 'meal_items', column: 'meal_items', said: 'items' },
  { name: '_rejects', column: 'rejects', said: 'rejects' },
];
/** What became of each user; there when all is. */
export const OUTCOMES = '_backfill.ndjson';

/** Rows of the files of an earlier run, by the first task of the user and provider for whom they are kept. */
export type Kept = ReadonlyMap<number, Rows>;

/** What a run fetches, as far as files of another one can hold more. */
export interface Fetches {
  readonly plan: BackfillPlan;
  /** The users are those that the service has now; one that it had before is gone there as well. */
  readonly isOfAll: boolean;
  readonly isErased: (user: string) => boolean;
}

/**
 * Keeps a run from replacing files that hold what it does not fetch: other users, providers or days.
 * @throws MillraceError usage
 */
export function refuseLoss(output: string, fetches: Fetches): void {
  const lost = lossIn(outcomesIn(output) ?? [], fetches);
  if (lost === null) return;
  throw new MillraceError(
    'usage',
    `${output} holds a finished backfill ${lost}, which this one does not fetch, and its files would be replaced; ` +
      'use another --out, or --replace',
  );
}

/** Whether the files are complete, nobody has failed, and they are of the days and users that are named. */
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

/** A day that is not named may be any, and a backfill of nobody is of any day. */
function isSame(named: string | undefined, was: string | undefined): boolean {
  return named === undefined || was === undefined || named === was;
}

function lossIn(outcomes: readonly Outcome[], { plan, isOfAll, isErased }: Fetches): string | null {
  const [users, providers] = [new Set(plan.users), new Set(plan.providers)];
  const held = outcomes.filter(
    ({ user_id: user, meals }) => meals > 0 && user !== ERASED_USER && !isErased(user),
  );
  const others = isOfAll ? 0 : new Set(held.map((one) => one.user_id)).difference(users).size;
  if (others > 0) return `of ${others} other ${others === 1 ? 'user' : 'users'}`;
  for (const { provider, since, until } of held) {
    if (providers.size > 0 && provider === null) return 'of all providers';
    if (providers.size > 0 && !providers.has(provider ?? '')) return `of other providers (${provider})`;
    if (since < plan.since) return `from ${since}`;
    if (until > plan.until) return `until ${until}`;
  }
  return null;
}

/** What became of each user; null where no backfill has ended. */
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
    // The members that were added last.
    if (!isRecord(value) || typeof value['since'] !== 'string' || typeof value['until'] !== 'string')
      throw new SyntaxError('not a line of a backfill, or of another format');
    return value as unknown as Outcome;
  });
}
