import type { Request, Response } from 'express';
import { z, type ZodType } from 'zod';
import { check, uuid, Refusal } from './check.ts';
import type { Key, Team } from './teams.ts';
import type { World } from './world.ts';

/** Reads one part of the request. @throws Refusal 422 */
type Reader = <T>(schema: ZodType<T>) => T;

/** A request with a valid key. */
export interface Call<Bearer> {
  readonly world: World;
  /** The team of a team key, or the Management Key. */
  readonly bearer: Bearer;
  readonly request: Request;
  readonly response: Response;
  readonly path: Reader;
  readonly query: Reader;
  readonly body: Reader;
}

/** The JSON of the answer; null when the operation has written it. */
export type Reply = object | null;

export interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** As express writes it: `/v2/user/:user_id`. */
  readonly path: string;
  /** For the page of operations. */
  readonly title: string;
  readonly auth: 'team' | 'management';
  /** Checks the key first. */
  readonly run: (world: World, request: Request, response: Response) => Reply | Promise<Reply>;
}

export type Handle<Bearer, More extends unknown[] = []> = (
  call: Call<Bearer>,
  ...more: More
) => ReturnType<Operation['run']>;

/** Builds an operation. */
export type Define<H> = (method: Operation['method'], path: string, title: string, handle: H) => Operation;

/** An operation for the bearer of a team API key. */
export const team: Define<Handle<Team>> = (method, path, title, handle) => {
  const run: Operation['run'] = (world, request, response) => {
    const { keys, teams, options } = world;
    const bearer = teams.get(keys.teamOf(request.headers, options.apiKeyHeader));
    return handle(callOf(world, bearer, request, response));
  };
  return { method, path, title, auth: 'team', run };
};

/** An operation for the bearer of a Management Key. */
export const management: Define<Handle<Key>> = (method, path, title, handle) => {
  const run: Operation['run'] = (world, request, response) => {
    const bearer = world.keys.managementOf(request.headers);
    if (world.options.plan !== 'scale')
      throw new Refusal(403, 'The Management API is part of the Scale plan');
    if (request.headers['x-management-key'] === undefined) response.setHeader('deprecation', 'true');
    return handle(callOf(world, bearer, request, response));
  };
  return { method, path: `/management/v1${path}`, title, auth: 'management', run };
};

/** An operation for the bearer of an Org Management Key. */
export const org: Define<Handle<Key>> = (method, path, title, handle) =>
  management(method, path, `${title} (Org Management Key)`, (call) => {
    if (call.bearer.kind !== 'org')
      throw new Refusal(403, 'A Team Management Key cannot reach org-level resources or actions');
    return handle(call);
  });

/** An operation on one team, for the bearer of a Management Key that reaches it. */
export const ofTeam: Define<Handle<Key, [Team]>> = (method, path, title, handle) =>
  management(method, `/team/:team_id${path}`, title, (call) => handle(call, teamOf(call)));

/** The team of the path. @throws Refusal 403 when the key is not bound to it, 404 when there is none */
export function teamOf({ world, bearer, path }: Call<Key>): Team {
  const { team_id } = path(z.object({ team_id: uuid }));
  if (bearer.kind === 'team' && !bearer.teamIds.includes(team_id))
    throw new Refusal(403, 'This Team Management Key is not bound to the team');
  return world.teams.get(team_id);
}

function callOf<Bearer>(world: World, bearer: Bearer, request: Request, response: Response): Call<Bearer> {
  return {
    world,
    bearer,
    request,
    response,
    path: (schema) => check(schema, request.params, 'path'),
    query: (schema) => check(schema, request.query, 'query'),
    body: (schema) => check(schema, request.body, 'body'),
  };
}
