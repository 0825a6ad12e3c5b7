import { z } from 'zod';
import { bulkOpJson } from '../bulk-ops.ts';
import { check, count, uuid } from '../check.ts';
import { readCursor, writeCursor } from '../cursor.ts';
import type { Operation } from '../operation.ts';
import { PROVIDERS } from '../providers.ts';
import { Refusal } from '../refusal.ts';
import type { Team } from '../teams.ts';

const TEAM = z.string().default('infer_from_context');
const TRIGGER = z.object({
  user_ids: z.array(uuid),
  provider: z.string().refine((name) => Object.hasOwn(PROVIDERS, name), 'Unknown provider'),
  wait_for_completion: z.boolean().default(false),
});
const LIST = z.object({ next_cursor: z.string().optional(), page_size: count(1, 50, 10), team_id: TEAM });

/** The longest wait for a bulk op; sandbox time. */
const WAIT_MS = 20_000;

export const bulkOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/v2/link/bulk_trigger_historical_pull',
    auth: 'team',
    title: 'Trigger historical pulls for many connections',
    handle: async ({ world, bearer, request }) => {
      const { team_id } = check(z.object({ team_id: TEAM }), request.query, 'query');
      needOwnTeam(bearer, team_id);
      const { user_ids, provider, wait_for_completion } = check(TRIGGER, request.body, 'body');
      if (user_ids.length === 0) return { status: 202, json: { detail: 'Nothing to trigger' } };
      const op = world.bulkOps.enqueue(bearer.id, provider, user_ids);
      if (wait_for_completion) {
        const late = new Promise<void>((resolve) => {
          world.timers.after(WAIT_MS, resolve);
        });
        await Promise.race([op.done, late]);
        if (op.status !== 'in_progress')
          return { status: 200, json: { detail: 'All triggers were processed' } };
      }
      return { status: 202, json: { detail: `Accepted ${user_ids.length} triggers` } };
    },
  },
  {
    method: 'get',
    path: '/v2/link/bulk_op',
    auth: 'team',
    title: 'Bulk ops, newest first, page by page',
    handle: ({ world, bearer, request }) => {
      const { next_cursor, page_size, team_id } = check(LIST, request.query, 'query');
      needOwnTeam(bearer, team_id);
      // By sequence, so that a new bulk op shifts no page that is still to be read.
      const before = next_cursor === undefined ? Infinity : readCursor(next_cursor);
      const rest = world.bulkOps.list(bearer.id).filter(({ sequence }) => sequence < before);
      const page = rest.slice(0, page_size);
      const last = page.at(-1);
      return {
        json: {
          data: page.map(bulkOpJson),
          next_cursor: rest.length > page.length && last !== undefined ? writeCursor(last.sequence) : null,
        },
      };
    },
  },
];

function needOwnTeam(team: Team, named: string): void {
  if (named !== 'infer_from_context' && named !== team.id)
    throw new Refusal(403, 'The key belongs to another team');
}
