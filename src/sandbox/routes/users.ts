import { z } from 'zod';
import { count, uuid, Refusal } from '../check.ts';
import { team, type Call, type Operation } from '../operation.ts';
import { RESOURCES } from '../health-data.ts';
import { uuidOf } from '../seeded.ts';
import type { Team } from '../teams.ts';
import { hasInsurance, namedProvider, personOf, userJson, type User } from '../users.ts';

const BOUNDS = z.object({ ingestion_start: z.iso.date().nullish(), ingestion_end: z.iso.date().nullish() });
const NEW_USER = BOUNDS.extend({ client_user_id: z.string().min(1).nullish() });
const PAGE = z.object({ offset: count(0, Number.MAX_SAFE_INTEGER, 0), limit: count(1, 500, 100) });
const WHICH = z.object({ user_id: uuid.optional(), client_user_id: z.string().optional() });

export const userOperations: readonly Operation[] = [
  team('post', '/v2/user', 'Create a user', ({ world, bearer, body }) => {
    const { client_user_id, ...bounds } = body(NEW_USER);
    return bounded(world.users.create(bearer.id, client_user_id ?? null), bounds);
  }),
  team('get', '/v2/user', 'List users', ({ world, bearer, query }) => {
    const { offset, limit } = query(PAGE);
    const all = world.users.list(bearer.id);
    return { users: all.slice(offset, offset + limit).map(userJson), total: all.length, offset, limit };
  }),
  team(
    'post',
    '/v2/user/undo_delete',
    'Undo the deletion of a user within its 7 days of grace',
    ({ world, bearer, query }) => {
      const { user_id: id, client_user_id: clientUserId } = query(WHICH);
      if (id === undefined && clientUserId === undefined)
        throw new Refusal(400, 'Give user_id or client_user_id');
      world.users.undoDelete(bearer.id, { id, clientUserId });
      return { success: true };
    },
  ),
  team(
    'get',
    '/v2/user/resolve/:client_user_id',
    'One user, by the client user id',
    ({ world, bearer, request }) =>
      userJson(world.users.resolve(bearer.id, String(request.params['client_user_id']))),
  ),
  team('get', '/v2/user/providers/:user_id', 'Connected providers of one user', (call) => ({
    providers: userOf(call).connections.map(({ provider, createdAt }) => ({
      ...namedProvider(provider),
      created_on: createdAt,
      status: 'connected',
      external_user_id: null,
      error_details: null,
      resource_availability: Object.fromEntries(RESOURCES.map((name) => [name, { status: 'available' }])),
    })),
  })),
  team('get', '/v2/providers', 'Providers of the service', ({ world }) =>
    [...world.options.throttles.keys()].map((provider) => ({
      ...namedProvider(provider),
      description: `The made-up provider ${provider}`,
      auth_type: 'oauth',
      supported_resources: RESOURCES,
    })),
  ),
  team('get', '/v2/team/:team_id', 'The team of the key', ({ world, bearer, request }) => {
    if (request.params['team_id'] !== bearer.id) throw new Refusal(404, 'Team not found');
    const messages = [
      'testkits_texts',
      'lab_tests_patient_communication',
      'lab_tests_patient_sms_communication',
    ];
    return {
      id: bearer.id,
      org_id: world.teams.orgId,
      name: bearer.name,
      delegated_flow: 'order_delegated',
      ...Object.fromEntries(
        [...messages, 'lab_tests_patient_email_communication'].map((name) => [`${name}_enabled`, false]),
      ),
    };
  }),
  team('get', '/v2/user/:user_id', 'One user', (call) => userJson(userOf(call))),
  team('patch', '/v2/user/:user_id', 'Set the ingestion bounds of a user', (call) =>
    bounded(userOf(call), call.body(BOUNDS)),
  ),
  team('delete', '/v2/user/:user_id', 'Delete a user: connections at once, data after 7 days', (call) => {
    call.world.users.delete(userOf(call));
    return { success: true };
  }),
  team(
    'get',
    '/v2/user/:user_id/insurance/latest',
    'Latest insurance of a user; one user in ten has none',
    (call) => {
      const user = userOf(call);
      if (!hasInsurance(user)) throw new Refusal(404, 'No insurance found for this user');
      return insuranceOf(user);
    },
  ),
];

/** The active user that the path names. @throws Refusal 404 */
export function userOf({ world, bearer, path }: Call<Team>): User {
  return world.users.get(bearer.id, path(z.object({ user_id: uuid })).user_id);
}

/** Sets the bounds that are given; a null is no bound. */
function bounded(user: User, given: z.infer<typeof BOUNDS>): object {
  Object.assign(user.bounds, given);
  return userJson(user);
}

export function insuranceOf(user: User): object {
  const { id, index } = user;
  const person = personOf(user);
  return {
    payor_code: `MADEUP${index % 3}`,
    member_id: `made-up-${uuidOf('member', id).slice(0, 8)}`,
    group_id: `made-up-group-${index % 5}`,
    relationship: ['Self', 'Spouse', 'Other'][index % 3],
    insured: person,
    company: { name: 'Made-up insurer', address: person.address },
    guarantor: null,
    is_primary: true,
  };
}
