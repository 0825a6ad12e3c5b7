import express, { type Request, type Response, type Router } from 'express';
import { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';

/** Answers with problem details, RFC 9457. */
export function sendProblem(response: Response, status: number, code: string, detail: string): void {
  response.status(status).type('application/problem+json');
  response.send(JSON.stringify({ type: 'about:blank', title: detail, status, code, detail }));
}

/** Answers a request with a problem of this status and code. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

type Answer = (request: Request<Record<string, string>>, response: Response) => unknown;

/** A router that answers with the returned values as JSON; the app answers what they throw. */
export function answering(routes: Readonly<Record<`${'GET' | 'POST'} /${string}`, Answer>>): Router {
  const api = express.Router();
  for (const [route, answer] of Object.entries(routes)) {
    const [method, path = '/'] = route.split(' ');
    const add = method === 'GET' ? api.get.bind(api) : api.post.bind(api);
    add<Record<string, string>>(path, async (request, response) => {
      response.json(await answer(request, response));
    });
  }
  return api;
}

/** Parses a body or a part of a request; a missing body is an empty object. @throws MillraceError usage */
export function parseAs<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const { data, error } = schema.safeParse(value ?? {});
  if (error !== undefined) throw new MillraceError('usage', z.prettifyError(error));
  return data;
}
