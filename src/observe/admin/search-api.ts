import express, { type Router } from 'express';
import { z } from 'zod';
import { wholeNumber } from './api.ts';
import type { EventSearch } from './event-search.ts';
import { bodyOf, sendProblem } from './problem.ts';

const MOST = 200;

const text = z.string().min(1).max(1024).optional();
const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional();
const time = z.iso
  .datetime({ offset: true })
  .transform((written) => Date.parse(written))
  .optional();

const requestSchema = z.strictObject({
  id: text,
  user: text,
  type: text,
  since: time,
  until: time,
  state: z.enum(['waiting', 'settled', 'nowhere', 'dead', 'quarantined']).optional(),
  before: whole,
  limit: z.number().int().min(1).max(MOST).default(50),
});

/** Searches events and tells the way of one. Ids travel in bodies only: addresses end up in logs. */
export function searchApi(search: EventSearch): Router {
  const api = express.Router();
  api.post('/', async (request, response) => {
    response.json(await search.find(bodyOf(requestSchema, request)));
  });
  api.get('/:seq', async (request, response) => {
    const way = await search.way(wholeNumber(request.params.seq));
    if (way === null) return sendProblem(response, 404, 'not_found', 'the journal no longer has this event');
    response.json(way);
  });
  return api;
}
