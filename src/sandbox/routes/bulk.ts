import { z } from 'zod';
import { bulkOpJson } from '../bulk-ops.ts';
import { count, cursor, uuid, writeCursor } from '../check.ts';
import { team, type Operation } from '../operation.ts';
import { PROVIDERS } from '../providers.ts';
import { Refusal } from '../refusal.ts';
import type { Team } from '../teams.ts';

const TEAM = z.string().default('infer_from_context');
const TRIGGER = z.object({
  user_ids: z.array(uuid),
  provider: z.string().refine((name) => Object.hasOwn(PROVIDERS, name), 'Unknown provider'),
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
      const { user_ids, provider, wait_for_completion } = body(TRIGGER);
      response.status(202);
      if (user_ids.length === 0) return { detail: 'Nothing to trigger' };
      const op = world.bulkOps.enqueue(bearer.id, provider, user_ids);
      if (wait_for_completion) {
        const late = new Promise<void>((resolve) => {
          world.timers.after(WAIT_MS, resolve);
        });
        await Promise.race([op.done, late]);
        if (op.status !== 'in_progress') {
          response.status(200);
          return { detail: 'All triggers were processed' };
        }
      }
      return { detail: `Accepted ${user_ids.length} triggers` };
    },
  ),
  team('get', '/v2/link/bulk_op', 'Bulk ops, newest first, page by page', ({ world, bearer, query }) => {
    const { next_cursor: before = Infinity, page_size, team_id } = query(LIST);
    needOwnTeam(bearer, team_id);
    // By sequence, so that a new bulk op shifts no page that is still to be read.
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
