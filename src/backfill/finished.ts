import { join } from 'node:path';
import { ERASED_USER } from '../core/erasure.ts';
import { MillraceError } from '../core/errors.ts';
import { readIfThere } from '../lib/durable.ts';
import { OUTCOMES, type Outcome } from './assemble.ts';
import type { BackfillPlan } from './plan.ts';

/**
 * Keeps a run from replacing files that hold what it does not fetch: other users, providers or days.
 * @param isOfAll the users are those that the service has now; one that it had before is gone there as well
 * @throws MillraceError usage
 */
export function refuseLoss(output: string, plan: BackfillPlan, isOfAll: boolean): void {
  const lost = lossIn(outcomesIn(output), plan, isOfAll);
  if (lost === null) return;
  throw new MillraceError(
    'usage',
    `${output} holds a finished backfill ${lost}, which this one does not fetch, and its files would be replaced; ` +
      'use another --out, or --replace',
  );
}

function lossIn(outcomes: readonly Partial<Outcome>[], plan: BackfillPlan, isOfAll: boolean): string | null {
  const [users, providers] = [new Set(plan.users), new Set(plan.providers)];
  for (const { user_id: user = '', provider = null, meals = 0, since, until } of outcomes) {
    if (meals === 0 || user === ERASED_USER) continue;
    if (!isOfAll && !users.has(user)) return `of other users (${user})`;
    if (providers.size > 0 && (provider === null || !providers.has(provider)))
      return provider === null ? 'of all providers' : `of other providers (${provider})`;
    // One of an earlier version does not say of which days it is.
    if (since !== undefined && since < plan.since) return `from ${since}`;
    if (until !== undefined && until > plan.until) return `until ${until}`;
  }
  return null;
}

function outcomesIn(output: string): Partial<Outcome>[] {
  const path = join(output, OUTCOMES);
  const lines = (readIfThere(path) ?? '').split('\n').filter(Boolean);
  try {
    return lines.map((line) => JSON.parse(line) as Partial<Outcome>);
  } catch (error) {
    throw new MillraceError('usage', `${path} is not of a backfill; use another --out, or --replace`, {
      cause: error,
    });
  }
}
