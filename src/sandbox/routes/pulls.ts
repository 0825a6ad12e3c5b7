import { z } from 'zod';
import { check, count, uuid } from '../check.ts';
import { readCursor, writeCursor } from '../cursor.ts';
import type { Operation } from '../operation.ts';

const QUERY = z.object({
  user_id: uuid.optional(),
  provider: z.string().optional(),
  user_limit: count(1, 50, 50),
  next_cursor: z.string().optional(),
});

export const pullOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/v2/introspect/historical_pull',
    auth: 'team',
    title: 'Status of historical pulls, user by user',
    handle: ({ world, bearer, request }) => {
      const { user_id, provider, user_limit, next_cursor } = check(QUERY, request.query, 'query');
      // A user's index never changes, so that one who leaves shifts no page that is still to be read.
      const after = next_cursor === undefined ? -1 : readCursor(next_cursor);
      const data: object[] = [];
      let last = -1;
      const one = user_id === undefined ? null : world.users.find(bearer.id, user_id);
      const users = user_id === undefined ? world.users.after(bearer.id, after) : one === null ? [] : [one];
      for (const user of users) {
        const status = world.pulls.statusOf(user, provider);
        if (status === null) continue;
        if (data.length === user_limit) return { json: { data, next_cursor: writeCursor(last) } };
        data.push({ user_id: user.id, provider: status });
        last = user.index;
      }
      return { json: { data, next_cursor: null } };
    },
  },
];
