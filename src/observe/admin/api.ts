import express, { type Response, type Router } from 'express';
import { MillraceError } from '../../core/errors.ts';
import type { Selection } from '../../core/journal.ts';
import type { SetAsideKind } from '../../core/receipt.ts';
import type { EventSummary, Operations } from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import { SET_ASIDE } from './audit.ts';
import { sendProblem } from './problem.ts';

/**
 * The admin API that the commands and the console use.
 * @param operationsOf what whoever asks may see and do
 * @param mayShow whether whoever asks may see bodies
 */
export function createApi(
  operationsOf: (response: Response) => Operations,
  mayShow: (response: Response) => boolean,
): Router {
  const api = express.Router();
  api.get('/status', async (_request, response) => void response.json(await operationsOf(response).status()));
  api.get('/schema', async (_request, response) => void response.json(await operationsOf(response).schema()));
  api.get('/routes', async (_request, response) => void response.json(await operationsOf(response).routes()));
  api.get('/events', async (request, response) => {
    if (!mayShow(response)) return refuseBodies(response);
    response.json(await operationsOf(response).listEvents(selectionOf(request.query)));
  });
  api.get('/heads', async (request, response) => {
    response.json(await operationsOf(response).listHeads(wholeNumber(request.query['after'] ?? 0)));
  });
  api.get('/account', async (request, response) => {
    const { since, until } = request.query;
    response.json(await operationsOf(response).account(wholeNumber(since), wholeNumber(until)));
  });
  for (const [kind, { list, retry, drop }] of Object.entries(SET_ASIDE)) {
    api.get(`/${kind}`, async (request, response) => {
      const bodies = request.query['bodies'] === 'true';
      if (bodies && !mayShow(response)) return refuseBodies(response);
      response.json(await operationsOf(response)[list](selectionOf(request.query), bodies));
    });
    api.get(`/${kind}/count`, async (request, response) => {
      response.json(await countOf(operationsOf(response)[list], selectionOf(request.query)));
    });
    api.get(`/${kind}/entries`, async (request, response) => {
      const selection = selectionOf(request.query);
      response.json(await operationsOf(response).listEntries(kind as SetAsideKind, selection));
    });
    api.post(`/${kind}/retry`, async (request, response) => {
      response.json(await operationsOf(response)[retry](selectionIn(request.body)));
    });
    api.post(`/${kind}/drop`, async (request, response) => {
      response.json({ dropped: await operationsOf(response)[drop](selectionIn(request.body)) });
    });
  }
  api.post('/sinks/drop', async (request, response) => {
    const { sink } = request.body as { sink?: unknown };
    if (typeof sink !== 'string') throw new MillraceError('usage', 'the body must name the sink');
    response.json(await operationsOf(response).dropSink(sink));
  });
  return api;
}

function refuseBodies(response: Response): void {
  sendProblem(response, 403, 'forbidden', 'console.payloads is not set: bodies are not shown');
}

/** How many of what is set aside are counted. */
const MOST_COUNTED = 100_000;

/** What a retry would be of: how many events, and of which types. */
async function countOf(
  list: (selection: Selection, bodies: boolean) => Promise<readonly EventSummary[]>,
  selection: Selection,
): Promise<{ events: number; isAll: boolean; types: Readonly<Record<string, number>> }> {
  const types = new Map<string, number>();
  let events = 0;
  for await (const page of pagesOf((part) => list(part, false), { limit: MOST_COUNTED + 1, ...selection })) {
    events += page.length;
    for (const { event_type: type } of page) types.set(type, (types.get(type) ?? 0) + 1);
  }
  return { events, isAll: events <= MOST_COUNTED, types: Object.fromEntries(types) };
}

const SELECTS: ReadonlySet<string> = new Set(['keys', 'sink', 'limit', 'after']);

/** As `selectionOf`, of a body. What is read as no selection selects everything, so it must be meant. */
function selectionIn(body: unknown): Selection {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new MillraceError('usage', 'the body must be a JSON object, {} for everything');
  const unknown = Object.keys(body).find((key) => !SELECTS.has(key));
  if (unknown !== undefined)
    throw new MillraceError('usage', `a selection can have ${[...SELECTS].join(', ')}, not ${unknown}`);
  return selectionOf(body);
}

/** Reads `keys` (comma-separated or a list), `sink`, `limit` and `after`. */
function selectionOf(value: unknown): Selection {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const selection: { -readonly [Key in keyof Selection]: Selection[Key] } = {};
  const { keys, sink } = fields;
  if (keys !== undefined)
    selection.keys = (Array.isArray(keys) ? keys : textOf(keys).split(',')).map(wholeNumber);
  // Passed over, it would select what every sink has.
  if (sink !== undefined && typeof sink !== 'string')
    throw new MillraceError('usage', 'sink must be the name of one');
  if (sink !== undefined) selection.sink = sink;
  if (fields['limit'] !== undefined) selection.limit = wholeNumber(fields['limit']);
  if (fields['after'] !== undefined) selection.after = wholeNumber(fields['after']);
  return selection;
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** @throws MillraceError usage */
export function wholeNumber(value: unknown): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new MillraceError('usage', 'keys, limit and after must be whole numbers');
  return number;
}
