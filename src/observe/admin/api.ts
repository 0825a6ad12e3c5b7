import type { Response, Router } from 'express';
import { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';
import type { Erasures, Subject } from '../../core/erasure.ts';
import type { Selection } from '../../core/journal.ts';
import type { SetAsideKind } from '../../core/receipt.ts';
import type { EventSummary, Operations } from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import { toRouteRecordJson } from '../../core/route-record.ts';
import { type Audit, type AuditEntry, SET_ASIDE } from './audit.ts';
import type { EventSearch } from './event-search.ts';
import { whoOf } from './guard.ts';
import { answering, bodyOf, Refused } from './problem.ts';
import { replayOrderSchema } from './replay-orders.ts';
import type { Replays } from './replays.ts';

/**
 * The admin API that the commands and the console use.
 * @param operationsOf what whoever asks may see and do
 * @param mayShow whether whoever asks may see bodies
 */
export function createApi(
  operationsOf: (response: Response) => Operations,
  mayShow: (response: Response) => boolean,
): Router {
  const bodiesTo = (response: Response): void => {
    if (!mayShow(response)) throw bodiesRefused();
  };
  const api = answering({
    'GET /status': (_, response) => operationsOf(response).status(),
    'GET /schema': (_, response) => operationsOf(response).schema(),
    'GET /routes': async (_, response) => toRouteRecordJson(await operationsOf(response).routes()),
    'GET /events': ({ query }, response) => {
      bodiesTo(response);
      return operationsOf(response).listEvents(selectionOf(query));
    },
    'GET /heads': ({ query: { after = 0 } }, response) =>
      operationsOf(response).listHeads(wholeNumber(after)),
    'GET /account': async ({ query: { since, until } }, response) => {
      const account = await operationsOf(response).account(wholeNumber(since), wholeNumber(until));
      return { ...account, routes: toRouteRecordJson(account.routes) };
    },
    'POST /sinks/drop': ({ body }, response) => {
      const { sink } = body as { sink?: unknown };
      if (typeof sink !== 'string') throw new MillraceError('usage', 'the body must name the sink');
      return operationsOf(response).dropSink(sink);
    },
  });
  for (const [kind, { list, retry, drop }] of Object.entries(SET_ASIDE))
    api.use(
      `/${kind}`,
      answering({
        'GET /': ({ query }, response) => {
          const bodies = query['bodies'] === 'true';
          if (bodies) bodiesTo(response);
          return operationsOf(response)[list](selectionOf(query), bodies);
        },
        'GET /count': ({ query }, response) => countOf(operationsOf(response)[list], selectionOf(query)),
        'GET /entries': ({ query }, response) =>
          operationsOf(response).listEntries(kind as SetAsideKind, selectionOf(query)),
        'POST /retry': ({ body }, response) => operationsOf(response)[retry](selectionIn(body)),
        'POST /drop': async ({ body }, response) => {
          return { dropped: await operationsOf(response)[drop](selectionIn(body)) };
        },
      }),
    );
  return api;
}

export function bodiesRefused(): Refused {
  return new Refused(403, 'forbidden', 'console.payloads is not set: bodies are not shown');
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

/** The part that `millrace erase` uses. Ids travel in bodies only: addresses end up in logs. */
export function erasureApi(erasuresOf: (response: Response) => Erasures): Router {
  return answering({
    'GET /': (_, response) => erasuresOf(response).list(),
    'POST /': ({ body }, response) => {
      const { now } = Object(body) as { now?: unknown };
      return erasuresOf(response).request(subjectOf(body), now === true);
    },
    'POST /cancel': ({ body }, response) => erasuresOf(response).cancel(subjectOf(body)),
    'GET /progress': async (_, response) => (await erasuresOf(response).progress?.()) ?? null,
    'POST /run': (_, response) => erasuresOf(response).run(),
  });
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

const MOST_FOUND = 200;

const text = z.string().min(1).max(1024).optional();
const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional();
const time = z.iso
  .datetime({ offset: true })
  .transform((written) => Date.parse(written))
  .optional();

const searchSchema = z.strictObject({
  id: text,
  user: text,
  type: text,
  since: time,
  until: time,
  state: z.enum(['waiting', 'settled', 'nowhere', 'dead', 'quarantined']).optional(),
  before: whole,
  limit: z.number().int().min(1).max(MOST_FOUND).default(50),
});

/** Searches events and tells the way of one. Ids travel in bodies only, as of erasures. */
export function searchApi(search: EventSearch): Router {
  return answering({
    'POST /': (request) => search.find(bodyOf(searchSchema, request)),
    'GET /:seq': async ({ params }) => {
      const way = await search.way(wholeNumber(params['seq']));
      if (way === null) throw new Refused(404, 'not_found', 'the journal no longer has this event');
      return way;
    },
  });
}

/** Replays that a person starts in the console: counted first, and noted before anything is sent. */
export function replayApi(replays: Replays, audit: Audit): Router {
  const note = async (action: AuditEntry['action'], id: string, response: Response): Promise<void> => {
    const { order } = replays.get(id);
    const ids = [id, `${order.from} to ${order.to ?? 'the routes'}`];
    await audit.note({ who: whoOf(response), action, what: 'replays', ids });
  };
  return answering({
    'GET /': () => ({ jobs: replays.list(), ...replays.choices() }),
    'POST /': (request) => replays.count(bodyOf(replayOrderSchema, request)),
    'POST /:id/start': async ({ params: { id = '' } }, response) => {
      replays.mayStart(id);
      await note('replay', id, response);
      return replays.start(id);
    },
    'POST /:id/stop': async ({ params: { id = '' } }, response) => {
      await note('cancel', id, response);
      return replays.stop(id);
    },
    'POST /:id/forget': async ({ params: { id = '' } }, response) => {
      await note('drop', id, response);
      replays.forget(id);
      return { forgotten: true };
    },
  });
}
