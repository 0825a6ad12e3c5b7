import { fileURLToPath } from 'node:url';
import express, { type Router } from 'express';
import { wholeNumber } from './api.ts';
import type { Audit } from './audit.ts';
import { whoOf } from './guard.ts';
import { sendProblem } from './problem.ts';

/** What the console is shown; the page asks once a second. */
export interface ConsoleSource {
  /**
   * The state of now, as JSON.
   * @param since milliseconds since the epoch: seconds of the history after it
   * @param after number of the newest recent event the page has
   */
  state(since: number, after: number): Promise<object>;
  /** The body of an event that is still in the journal; null when it is not. Undefined unless bodies may be shown now. */
  readonly body?:
    ((seq: number) => Promise<{ readonly id: string; readonly body: Buffer } | null>) | undefined;
}

/** The page itself: files as they are, without a build step. It holds nothing secret; what it asks for is guarded. */
export function consolePages(): Router {
  const pages = express.Router();
  pages.use(
    express.static(fileURLToPath(new URL('./console/', import.meta.url)), {
      cacheControl: false,
      setHeaders: (response) => void response.setHeader('cache-control', 'no-cache'),
    }),
  );
  return pages;
}

/** What the page asks for. */
export function consoleApi(source: ConsoleSource, audit: Audit): Router {
  const api = express.Router();
  api.get('/', async (request, response) => {
    const { since = 0, after = 0 } = request.query;
    response.json(await source.state(wholeNumber(since), wholeNumber(after)));
  });
  api.get('/events/:seq', async (request, response) => {
    if (source.body === undefined)
      return sendProblem(response, 403, 'forbidden', 'console.payloads is not set: bodies are not shown');
    const event = await source.body(wholeNumber(request.params.seq));
    if (event === null)
      return sendProblem(response, 404, 'not_found', 'the journal no longer has this event');
    await audit.note({ who: whoOf(response), action: 'show', what: 'events', ids: [event.id] });
    response.json({ body_base64: event.body.toString('base64') });
  });
  return api;
}
