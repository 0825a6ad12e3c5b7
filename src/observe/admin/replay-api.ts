import express, { type Response, type Router } from 'express';
import type { Audit, AuditEntry } from './audit.ts';
import { bodyOf } from './problem.ts';
import { whoOf } from './guard.ts';
import { replayOrderSchema } from './replay-orders.ts';
import { type ReplayJob, type Replays } from './replays.ts';

/** Replays that a person starts in the console: counted first, and noted before anything is sent. */
export function replayApi(replays: Replays, audit: Audit): Router {
  const api = express.Router();
  const note = (
    response: Response,
    action: AuditEntry['action'],
    { id, order }: ReplayJob,
  ): Promise<void> => {
    const ids = [id, `${order.from} to ${order.to ?? 'the routes'}`];
    return audit.note({ who: whoOf(response), action, what: 'replays', ids });
  };
  api.get('/', (_request, response) => {
    response.json({ jobs: replays.list(), ...replays.choices() });
  });
  api.post('/', (request, response) => {
    response.json(replays.count(bodyOf(replayOrderSchema, request)));
  });
  api.post('/:id/start', async (request, response) => {
    const { id } = request.params;
    replays.mayStart(id);
    await note(response, 'replay', replays.get(id));
    response.json(await replays.start(id));
  });
  api.post('/:id/stop', async (request, response) => {
    const { id } = request.params;
    await note(response, 'cancel', replays.get(id));
    response.json(replays.stop(id));
  });
  api.post('/:id/forget', async (request, response) => {
    const { id } = request.params;
    await note(response, 'drop', replays.get(id));
    replays.forget(id);
    response.json({ forgotten: true });
  });
  return api;
}
