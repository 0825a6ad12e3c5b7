import { z } from 'zod';
import { check, uuid } from '../check.ts';
import { needOrg, needTeam, type Key } from '../keys.ts';
import type { Call, ManagementOperation } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import type { Team } from '../teams.ts';
import type { ManagementKey } from '../keys.ts';

const NEW_KEY = z.object({
  kind: z.enum(['org', 'team']),
  team_ids: z.array(uuid).default([]),
  label: z.string().default('made up'),
});

/** The team of the path. @throws Refusal 403 when the key is not bound to it, 404 when there is none */
export function teamOf({ world, bearer, request }: Call<ManagementKey>): Team {
  const { team_id } = check(z.object({ team_id: uuid }), request.params, 'path');
  needTeam(bearer, team_id);
  return world.teams.get(team_id);
}

const teams: readonly ManagementOperation[] = [
  {
    method: 'get',
    path: '/management/v1/team',
    auth: 'management',
    title: 'Teams that the key reaches',
    handle: ({ world, bearer }) => {
      const reached = world.teams
        .all()
        .filter(({ id }) => bearer.kind === 'org' || bearer.teamIds.includes(id));
      return { json: { data: reached.map(teamJson) } };
    },
  },
  {
    method: 'post',
    path: '/management/v1/team',
    auth: 'management',
    title: 'Create a team (Org Management Key)',
    handle: ({ world, bearer, request }) => {
      needOrg(bearer);
      const { name } = check(z.object({ name: z.string().min(1) }), request.body, 'body');
      const team = world.teams.create(name, { ...world.options.features }, world.timers.stamp());
      const key = world.keys.create('api', [team.id], 'first key');
      return { json: { ...teamJson(team), api_key: key.value } };
    },
  },
  {
    method: 'patch',
    path: '/management/v1/team/:team_id',
    auth: 'management',
    title: 'Update a team, its partial_results among it',
    handle: (call) => {
      const team = teamOf(call);
      const schema = z.object({
        name: z.string().min(1).optional(),
        partial_results: z.boolean().optional(),
      });
      const { name, partial_results } = check(schema, call.request.body, 'body');
      team.name = name ?? team.name;
      team.features.partialResults = partial_results ?? team.features.partialResults;
      call.world.teams.save(team);
      return { json: teamJson(team) };
    },
  },
  {
    method: 'delete',
    path: '/management/v1/team/:team_id',
    auth: 'management',
    title: 'Delete a team (Org Management Key)',
    handle: (call) => {
      needOrg(call.bearer);
      const { id } = teamOf(call);
      const { keys, endpoints, users, teams: all } = call.world;
      for (const key of keys.all()) if (key.kind === 'api' && key.teamIds[0] === id) keys.delete(key);
      for (const endpoint of endpoints.list(id)) endpoints.delete(endpoint);
      users.deleteTeam(id);
      all.delete(id);
      return { json: { success: true } };
    },
  },
  {
    method: 'get',
    path: '/management/v1/team/:team_id/brand',
    auth: 'management',
    title: 'Brand information of a team',
    handle: (call) => ({ json: teamOf(call).brand }),
  },
  {
    method: 'put',
    path: '/management/v1/team/:team_id/brand',
    auth: 'management',
    title: 'Replace the brand information of a team',
    handle: (call) => {
      const team = teamOf(call);
      team.brand = check(z.record(z.string(), z.unknown()), call.request.body, 'body');
      call.world.teams.save(team);
      return { json: team.brand };
    },
  },
];

const keys: readonly ManagementOperation[] = [
  {
    method: 'get',
    path: '/management/v1/team/:team_id/api_key',
    auth: 'management',
    title: 'Team API keys, without their values',
    handle: (call) => {
      const { id } = teamOf(call);
      const own = call.world.keys.all().filter((key) => key.kind === 'api' && key.teamIds[0] === id);
      return { json: { data: own.map((key) => keyJson(key)) } };
    },
  },
  {
    method: 'post',
    path: '/management/v1/team/:team_id/api_key',
    auth: 'management',
    title: 'Create a team API key; its value is shown once',
    handle: (call) => {
      const { label } = check(z.object({ label: z.string().default('made up') }), call.request.body, 'body');
      const key = call.world.keys.create('api', [teamOf(call).id], label);
      return { json: keyJson(key, true) };
    },
  },
  {
    method: 'delete',
    path: '/management/v1/team/:team_id/api_key/:key_id',
    auth: 'management',
    title: 'Delete a team API key',
    handle: (call) => {
      const { id } = teamOf(call);
      deleteKey(call, (key) => key.kind === 'api' && key.teamIds[0] === id);
      return { json: { success: true } };
    },
  },
  {
    method: 'get',
    path: '/management/v1/key',
    auth: 'management',
    title: 'Management Keys (Org Management Key)',
    handle: ({ world, bearer }) => {
      needOrg(bearer);
      return {
        json: {
          data: world.keys
            .all()
            .filter(({ kind }) => kind !== 'api')
            .map((key) => keyJson(key)),
        },
      };
    },
  },
  {
    method: 'post',
    path: '/management/v1/key',
    auth: 'management',
    title: 'Create a Management Key (Org Management Key), for several teams too',
    handle: ({ world, bearer, request }) => {
      needOrg(bearer);
      const { kind, team_ids, label } = check(NEW_KEY, request.body, 'body');
      if ((kind === 'team') === (team_ids.length === 0)) {
        throw new Refusal(400, 'A Team Management Key is bound to teams, an Org Management Key is not');
      }
      for (const id of team_ids) world.teams.get(id);
      return { json: keyJson(world.keys.create(kind, team_ids, label), true) };
    },
  },
  {
    method: 'delete',
    path: '/management/v1/key/:key_id',
    auth: 'management',
    title: 'Delete a Management Key (Org Management Key)',
    handle: (call) => {
      needOrg(call.bearer);
      deleteKey(call, ({ kind }) => kind !== 'api');
      return { json: { success: true } };
    },
  },
];

export const managementOperations: readonly ManagementOperation[] = [...teams, ...keys];

function deleteKey({ world, request }: Call<ManagementKey>, fits: (key: Key) => boolean): void {
  const key = world.keys.all().find(({ id }) => id === request.params['key_id']);
  if (key === undefined || !fits(key)) throw new Refusal(404, 'Key not found');
  world.keys.delete(key);
}

function teamJson(team: Team): object {
  const { id, name, createdAt, features } = team;
  return { id, name, created_at: createdAt, partial_results: features.partialResults };
}

function keyJson({ id, kind, teamIds, label, value }: Key, shown = false): object {
  return { id, kind, team_ids: teamIds, label, ...(shown ? { key: value } : {}) };
}
