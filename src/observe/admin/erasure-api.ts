import express, { type Response, type Router } from 'express';
import { MillraceError } from '../../core/errors.ts';
import type { Erasures, Subject } from '../../core/erasure.ts';

/** The part of the admin API that `millrace erase` uses. Ids travel in bodies only: addresses end up in logs. */
export function createErasureApi(erasuresOf: (response: Response) => Erasures): Router {
  const api = express.Router();
  api.get('/', async (_request, response) => void response.json(await erasuresOf(response).list()));
  api.post('/', async (request, response) => {
    const { now } = Object(request.body) as { now?: unknown };
    response.json(await erasuresOf(response).request(subjectOf(request.body), now === true));
  });
  api.post('/cancel', async (request, response) => {
    response.json(await erasuresOf(response).cancel(subjectOf(request.body)));
  });
  api.get('/progress', async (_request, response) => {
    response.json((await erasuresOf(response).progress?.()) ?? null);
  });
  api.post('/run', async (_request, response) => void response.json(await erasuresOf(response).run()));
  return api;
}

function subjectOf(body: unknown): Omit<Subject, 'request'> {
  const { by, id, team } = Object(body) as Readonly<Record<string, unknown>>;
  if (by !== 'user' && by !== 'client_user')
    throw new MillraceError('usage', 'by must be user or client_user');
  if (typeof id !== 'string' || id === '') throw new MillraceError('usage', 'id must be a text');
  if (team !== null && typeof team !== 'string')
    throw new MillraceError('usage', 'team must be a text or null');
  return { by, id, team };
}
