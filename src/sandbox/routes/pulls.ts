import { z } from 'zod';
import { count, cursor, uuid, writeCursor } from '../check.ts';
import { team, type Operation } from '../operation.ts';

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
      // A user's index never changes, so that one who leaves shifts no page that is still to be read.
      const { user_id, provider, user_limit, next_cursor: after = -1 } = query(QUERY);
      const one = user_id === undefined ? null : world.users.find(bearer.id, user_id);
      const users = user_id === undefined ? world.users.after(bearer.id, after) : one === null ? [] : [one];
      const data: object[] = [];
      let last = -1;
      for (const user of users) {
        const status = world.pulls.statusOf(user, provider);
        if (status === null) continue;
        if (data.length === user_limit) return { data, next_cursor: writeCursor(last) };
        data.push({ user_id: user.id, provider: status });
        last = user.index;
      }
      return { data, next_cursor: null };
    },
  ),
];
