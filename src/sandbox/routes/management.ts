import { z } from 'zod';
import { uuid, Refusal } from '../check.ts';
import { type Key, PULL_PREFERENCES, type Team } from '../teams.ts';
import { management, ofTeam, org, teamOf, type Call, type Operation } from '../operation.ts';

const label = z.string().default('made up');
const NEW_KEY = z.object({ kind: z.enum(['org', 'team']), team_ids: z.array(uuid).default([]), label });
const name = z.string().min(1);
const TEAM_UPDATE = z.object({
  name: name.optional(),
  partial_results: z.boolean().optional(),
  lab_report_parsing: z.boolean().optional(),
  data_pull_preferences: PULL_PREFERENCES.optional(),
});
const DONE = { success: true };

export const managementOperations: readonly Operation[] = [
  management('get', '/team', 'Teams that the key reaches', ({ world, bearer }) => {
    const reached = world.teams
      .all()
      .filter(({ id }) => bearer.kind === 'org' || bearer.teamIds.includes(id));
    return { data: reached.map(teamJson) };
  }),
  org('post', '/team', 'Create a team', ({ world, body }) => {
    const created = body(z.object({ name }));
    const team = world.teams.create(created.name, { ...world.options.features }, world.timers.stamp());
    const key = world.keys.create('api', [team.id], 'first key');
    return { ...teamJson(team), api_key: key.value };
  }),
  ofTeam('patch', '', 'Update a team: its features and data pull preferences too', ({ body }, team) => {
    const update = body(TEAM_UPDATE);
    team.name = update.name ?? team.name;
    team.features.partialResults = update.partial_results ?? team.features.partialResults;
    team.features.parsing = update.lab_report_parsing ?? team.features.parsing;
    team.pullPreferences = update.data_pull_preferences ?? team.pullPreferences;
    return teamJson(team);
  }),
  org('delete', '/team/:team_id', 'Delete a team', (call) => {
    const { id } = teamOf(call);
    const { keys, endpoints, users, teams } = call.world;
    for (const key of keys.ofTeam(id)) keys.delete(key);
    for (const endpoint of endpoints.list(id)) endpoints.delete(endpoint);
    users.deleteTeam(id);
    teams.delete(id);
    return DONE;
  }),
  ofTeam('get', '/brand', 'Brand information of a team', (_call, { brand }) => brand),
  ofTeam('put', '/brand', 'Replace the brand information of a team', ({ body }, team) => {
    team.brand = body(z.record(z.string(), z.unknown()));
    return team.brand;
  }),

  ofTeam('get', '/api_key', 'Team API keys, without their values', ({ world }, { id }) => ({
    data: world.keys.ofTeam(id).map((key) => keyJson(key)),
  })),
  ofTeam('post', '/api_key', 'Create a team API key; its value is shown once', ({ world, body }, { id }) =>
    keyJson(world.keys.create('api', [id], body(z.object({ label })).label), true),
  ),
  ofTeam('delete', '/api_key/:key_id', 'Delete a team API key', (call, { id }) =>
    deleteKey(call, call.world.keys.ofTeam(id)),
  ),
  org('get', '/key', 'Management Keys', ({ world }) => ({
    data: world.keys.ofManagement().map((key) => keyJson(key)),
  })),
  org('post', '/key', 'Create a Management Key, for several teams too', ({ world, body }) => {
    const wanted = body(NEW_KEY);
    if ((wanted.kind === 'team') === (wanted.team_ids.length === 0)) {
      throw new Refusal(400, 'A Team Management Key is bound to teams, an Org Management Key is not');
    }
    for (const id of wanted.team_ids) world.teams.get(id);
    return keyJson(world.keys.create(wanted.kind, wanted.team_ids, wanted.label), true);
  }),
  org('delete', '/key/:key_id', 'Delete a Management Key', (call) =>
    deleteKey(call, call.world.keys.ofManagement()),
  ),
];

/** @param keys the ones that may be deleted */
function deleteKey({ world, request }: Call<Key>, keys: readonly Key[]): object {
  const key = keys.find(({ id }) => id === request.params['key_id']);
  if (key === undefined) throw new Refusal(404, 'Key not found');
  world.keys.delete(key);
  return DONE;
}

function teamJson({ id, name: named, createdAt, features, pullPreferences }: Team): object {
  const { partialResults: partial_results, parsing: lab_report_parsing } = features;
  const shown = { partial_results, lab_report_parsing, data_pull_preferences: pullPreferences };
  return { id, name: named, created_at: createdAt, ...shown };
}

function keyJson({ id, kind, teamIds, label: labelled, value }: Key, shown = false): object {
  return { id, kind, team_ids: teamIds, label: labelled, ...(shown ? { key: value } : {}) };
}
