import type { Response, Router } from 'express';
import { z } from 'zod';
import type { Erasures } from '../../core/erasure.ts';
import type { Selection } from '../../core/journal.ts';
import type { SetAsideKind } from '../../core/receipt.ts';
import type { EventSummary, Operations } from '../../core/operations.ts';
import { pagesOf } from '../../core/page.ts';
import { toRouteRecordJson } from '../../core/route-record.ts';
import { type Audit, type AuditEntry, SET_ASIDE } from './audit.ts';
import type { EventSearch } from './event-search.ts';
import { whoOf } from './guard.ts';
import { answering, parseAs, Refused } from './problem.ts';
import { replayOrderSchema } from './replay-orders.ts';
import type { Replays } from './replays.ts';

/** Also reads the texts of a query. */
const whole = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

/** Selects events of the journal, of quarantine or of dead letters; `keys` is a list, or a text with commas. */
const selectionSchema = z.object({
  keys: z
    .preprocess((keys) => (typeof keys === 'string' ? keys.split(',') : keys), z.array(whole))
    .optional(),
  sink: z.string().optional(),
  limit: whole.optional(),
  after: whole.optional(),
});

function selectionOf(query: unknown): Selection {
  return parseAs(selectionSchema, query) as Selection;
}

/** Strict, because a selection without a known key selects everything. */
function selectionIn(body: unknown): Selection {
  return parseAs(selectionSchema.strict(), body) as Selection;
}

/** @throws MillraceError usage */
export function wholeNumber(value: unknown): number {
  return parseAs(whole, value);
}

/**
 * The admin API for commands and the console.
 * @param operationsOf operations that note the caller in the audit log
 * @param mayShow whether the caller may see bodies
 */
export function createApi(
  operationsOf: (response: Response) => Operations,
  mayShow: (response: Response) => boolean,
): Router {
  const requireBodies = (response: Response): void => {
    if (!mayShow(response)) throw bodiesRefused();
  };
  const api = answering({
    'GET /status': (_, response) => operationsOf(response).status(),
    'GET /schema': (_, response) => operationsOf(response).schema(),
    'GET /routes': async (_, response) => toRouteRecordJson(await operationsOf(response).routes()),
    'GET /events': ({ query }, response) => {
      requireBodies(response);
      return operationsOf(response).listEvents(selectionOf(query));
    },
    'GET /heads': ({ query: { after = 0 } }, response) =>
      operationsOf(response).listHeads(wholeNumber(after)),
    'GET /account': async ({ query: { since, until } }, response) => {
      const account = await operationsOf(response).account(wholeNumber(since), wholeNumber(until));
      return { ...account, routes: toRouteRecordJson(account.routes) };
    },
    'POST /sinks/drop': ({ body }, response) =>
      operationsOf(response).dropSink(parseAs(z.object({ sink: z.string() }), body).sink),
  });
  for (const [kind, { list, retry, drop }] of Object.entries(SET_ASIDE))
    api.use(
      `/${kind}`,
      answering({
        'GET /': ({ query }, response) => {
          const bodies = query['bodies'] === 'true';
          if (bodies) requireBodies(response);
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

const MOST_COUNTED = 100_000;

/** Counts the selected events by type, for a confirmation in the console. */
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

const subjectSchema = z.object({
  by: z.enum(['user', 'client_user']),
  id: z.string().min(1),
  team: z.string().nullable(),
});

/** For `millrace erase`. Ids are in bodies only, because URLs end up in logs. */
export function erasureApi(erasuresOf: (response: Response) => Erasures): Router {
  return answering({
    'GET /': (_, response) => erasuresOf(response).list(),
    'POST /': ({ body }, response) =>
      erasuresOf(response).request(parseAs(subjectSchema, body), Object(body).now === true),
    'POST /cancel': ({ body }, response) => erasuresOf(response).cancel(parseAs(subjectSchema, body)),
    'GET /progress': async (_, response) => (await erasuresOf(response).progress?.()) ?? null,
    'POST /run': (_, response) => erasuresOf(response).run(),
  });
}

const MOST_FOUND = 200;

const text = z.string().min(1).max(1024).optional();
const number = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional();
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
  before: number,
  limit: z.number().int().min(1).max(MOST_FOUND).default(50),
});

/** Searches events, and shows the timeline of one. Ids are in bodies only, because URLs end up in logs. */
export function searchApi(search: EventSearch): Router {
  return answering({
    'POST /': ({ body }) => search.find(parseAs(searchSchema, body)),
    'GET /:seq': async ({ params }) => {
      const timeline = await search.timeline(wholeNumber(params['seq']));
      if (timeline === null) throw new Refused(404, 'not_found', 'the journal no longer has this event');
      return timeline;
    },
  });
}

/** Replays of the console: counted first, and noted in the audit log before anything is sent. */
export function replayApi(replays: Replays, audit: Audit): Router {
  const note = async (action: AuditEntry['action'], id: string, response: Response): Promise<void> => {
    const { order } = replays.get(id);
    const ids = order === null ? [id] : [id, `${order.from} to ${order.to ?? 'the routes'}`];
    await audit.note({ who: whoOf(response), action, what: 'replays', ids });
  };
  return answering({
    'GET /': () => ({ jobs: replays.list(), ...replays.choices() }),
    'POST /': ({ body }) => replays.count(parseAs(replayOrderSchema, body)),
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

const flushSchema = z.object({ sinks: z.array(z.string()).optional() });

/** Closes open files of sinks. @param flush null means all sinks */
export function flushApi(flush: (sinks: readonly string[] | null) => Promise<unknown>): Router {
  return answering({
    'POST /': async ({ body }) => ({ flushed: await flush(parseAs(flushSchema, body).sinks ?? null) }),
  });
}
