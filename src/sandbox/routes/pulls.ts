import { z } from 'zod';
import { count, cursor, uuid, writeCursor, Refusal } from '../check.ts';
import { team, type Operation } from '../operation.ts';
import { bulkOpJson } from '../bulk-ops.ts';
import { RESOURCES } from '../health-data.ts';
import type { Team } from '../teams.ts';
import type { World } from '../world.ts';

const QUERY = z.object({
  user_id: uuid.optional(),
  provider: z.string().optional(),
  user_limit: count(1, 50, 50),
  next_cursor: cursor,
});

export const pullOperations: readonly Operation[] = [
  team(
    'get',
    '/v2/introspect/historical_pull',
    'Status of historical pulls, user by user',
    ({ world, bearer, query }) => {
      // By index, so that a deleted user does not shift the next page.
      const { user_id, provider, user_limit, next_cursor: after = -1 } = query(QUERY);
      const one = user_id === undefined ? null : world.users.find(bearer.id, user_id);
      const users = user_id === undefined ? world.users.after(bearer.id, after) : one === null ? [] : [one];
      const data: object[] = [];
      let last = -1;
      for (const user of users) {
        const status = world.pulls.statusOf(user, provider);
        if (status === null) continue;
        if (data.length === user_limit) {
          const next = writeCursor(last);
          return { data, next, next_cursor: next };
        }
        data.push({ user_id: user.id, provider: withOutages(status, world.health) });
        last = user.index;
      }
      return { data, next: null, next_cursor: null };
    },
  ),
];

/** What the pulls of providers look like during an outage. */
function withOutages(status: object, { outages }: World['health']): object {
  const shown = Object.entries(status as Readonly<Record<string, { pulled: Record<string, object> }>>);
  return Object.fromEntries(
    shown.map(([provider, { pulled, ...rest }]) => {
      const outage = outages.get(provider);
      if (outage === 'not_pulled') return [provider, { pulled: {}, not_pulled: RESOURCES }];
      if (outage !== 'failure') return [provider, { pulled, ...rest }];
      const failure = { status: 'failure', error_details: { message: 'The made-up provider has an outage' } };
      const failed = Object.entries(pulled).map(([name, pull]) => [name, { ...pull, ...failure }]);
      return [provider, { pulled: Object.fromEntries(failed), ...rest }];
    }),
  );
}

const TEAM = z.string().default('infer_from_context');
const TRIGGER = z.object({
  user_ids: z.array(uuid),
  provider: z.string(),
  wait_for_completion: z.boolean().default(false),
});
const LIST = z.object({ next_cursor: cursor, page_size: count(1, 50, 10), team_id: TEAM });

/** The longest wait for a bulk op; sandbox time. */
const WAIT_MS = 20_000;

export const bulkOperations: readonly Operation[] = [
  team(
    'post',
    '/v2/link/bulk_trigger_historical_pull',
    'Trigger historical pulls for many connections',
    async ({ world, bearer, query, body, response }) => {
      needOwnTeam(bearer, query(z.object({ team_id: TEAM })).team_id);
      const { user_ids, provider, wait_for_completion } = body(
        TRIGGER.refine(({ provider: name }) => world.options.throttles.has(name), {
          path: ['provider'],
          error: 'Unknown provider',
        }),
      );
      response.status(202);
      if (user_ids.length === 0) return { detail: 'Nothing to trigger' };
      const op = world.bulkOps.enqueue(bearer.id, provider, user_ids);
      if (wait_for_completion) {
        const late = new Promise<void>((resolve) => {
          world.timers.after(WAIT_MS, resolve);
        });
        await Promise.race([op.done, late]);
        if (op.status === 'success') {
          response.status(200);
          return { detail: 'All triggers were processed' };
        }
        if (op.status !== 'in_progress')
          return { detail: `The bulk op ended as ${op.status} after ${op.processed} triggers` };
      }
      return { detail: `Accepted ${user_ids.length} triggers` };
    },
  ),
  team('get', '/v2/link/bulk_op', 'Bulk ops, newest first, page by page', ({ world, bearer, query }) => {
    const { next_cursor: before = Infinity, page_size, team_id } = query(LIST);
    needOwnTeam(bearer, team_id);
    // By sequence, so that a new bulk op does not shift the next page.
    const rest = world.bulkOps.list(bearer.id).filter(({ sequence }) => sequence < before);
    const page = rest.slice(0, page_size);
    const last = rest.length > page.length ? page.at(-1) : undefined;
    return {
      data: page.map(bulkOpJson),
      next_cursor: last === undefined ? null : writeCursor(last.sequence),
    };
  }),
];

function needOwnTeam(own: Team, named: string): void {
  if (named !== 'infer_from_context' && named !== own.id)
    throw new Refusal(403, 'The key belongs to another team');
}
