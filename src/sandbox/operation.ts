import type { Request, Response } from 'express';
import type { ManagementKey } from './keys.ts';
import type { Team } from './teams.ts';
import type { World } from './world.ts';

/** One request, after its key was checked. */
export interface Call<Bearer> {
  readonly world: World;
  /** The team of a team key, or the Management Key. */
  readonly bearer: Bearer;
  readonly request: Request;
  readonly response: Response;
}

/** An answer. `null` means that the operation has written it itself. */
export type Reply = {
  readonly status?: number;
  readonly json: unknown;
  readonly headers?: Record<string, string>;
} | null;

interface Described {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** As express writes it: `/v2/user/:user_id`. */
  readonly path: string;
  /** One line for the page that lists the operations. */
  readonly title: string;
  /** Reads the body itself: no JSON is expected. */
  readonly raw?: boolean;
}

export interface TeamOperation extends Described {
  readonly auth: 'team';
  readonly handle: (call: Call<Team>) => Reply | Promise<Reply>;
}

export interface ManagementOperation extends Described {
  readonly auth: 'management';
  readonly handle: (call: Call<ManagementKey>) => Reply | Promise<Reply>;
}

/** One operation of the service. */
export type Operation = TeamOperation | ManagementOperation;
