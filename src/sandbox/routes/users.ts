import { z } from 'zod';
import { check, count, uuid } from '../check.ts';
import type { Operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { uuidOf } from '../seeded.ts';
import { userJson, type User } from '../users.ts';

const PATH = z.object({ user_id: uuid });

export const userOperations: readonly Operation[] = [
  {
    method: 'post',
    path: '/v2/user',
    auth: 'team',
    title: 'Create a user',
    handle: ({ world, bearer, request }) => {
      const { client_user_id } = check(z.object({ client_user_id: z.string().min(1) }), request.body, 'body');
      return { json: userJson(world.users.create(bearer.id, client_user_id)) };
    },
  },
  {
    method: 'get',
    path: '/v2/user',
    auth: 'team',
    title: 'List users',
    handle: ({ world, bearer, request }) => {
      const schema = z.object({ offset: count(0, Number.MAX_SAFE_INTEGER, 0), limit: count(1, 500, 100) });
      const { offset, limit } = check(schema, request.query, 'query');
      const all = world.users.list(bearer.id);
      return {
        json: { users: all.slice(offset, offset + limit).map(userJson), total: all.length, offset, limit },
      };
    },
  },
  {
    method: 'post',
    path: '/v2/user/undo_delete',
    auth: 'team',
    title: 'Undo the deletion of a user within its 7 days of grace',
    handle: ({ world, bearer, request }) => {
      const schema = z.object({ user_id: uuid.optional(), client_user_id: z.string().optional() });
      const { user_id, client_user_id } = check(schema, request.query, 'query');
      if (user_id === undefined && client_user_id === undefined) {
        throw new Refusal(400, 'Give user_id or client_user_id');
      }
      world.users.undoDelete(bearer.id, {
        ...(user_id === undefined ? {} : { id: user_id }),
        ...(client_user_id === undefined ? {} : { clientUserId: client_user_id }),
      });
      return { json: { success: true } };
    },
  },
  {
    method: 'get',
    path: '/v2/user/:user_id',
    auth: 'team',
    title: 'One user',
    handle: ({ world, bearer, request }) => {
      const { user_id } = check(PATH, request.params, 'path');
      return { json: userJson(world.users.get(bearer.id, user_id)) };
    },
  },
  {
    method: 'delete',
    path: '/v2/user/:user_id',
    auth: 'team',
    title: 'Delete a user: connections at once, data after 7 days',
    handle: ({ world, bearer, request }) => {
      const { user_id } = check(PATH, request.params, 'path');
      world.users.delete(bearer.id, user_id);
      return { json: { success: true } };
    },
  },
  {
    method: 'get',
    path: '/v2/user/:user_id/insurance/latest',
    auth: 'team',
    title: 'Latest insurance of a user; one user in ten has none',
    handle: ({ world, bearer, request }) => {
      const { user_id } = check(PATH, request.params, 'path');
      const user = world.users.get(bearer.id, user_id);
      if (user.index % 10 === 7) throw new Refusal(404, 'No insurance found for this user');
      return { json: insuranceOf(user) };
    },
  },
];

function insuranceOf({ id, index }: User): object {
  return {
    payor_code: `MADEUP${index % 3}`,
    member_id: `made-up-${uuidOf('member', id).slice(0, 8)}`,
    group_id: `made-up-group-${index % 5}`,
    relationship: ['Self', 'Spouse', 'Other'][index % 3],
    insured: {
      first_name: 'Made',
      last_name: `Up ${index}`,
      email: `made-up-${index}@example.invalid`,
      phone_number: '+15550100000',
      gender: 'other',
      dob: '1990-01-01',
      address: {
        first_line: `${index} Made-up Street`,
        second_line: null,
        zip_code: '00000',
        state: 'ZZ',
        city: 'Madeup',
      },
    },
  };
}
