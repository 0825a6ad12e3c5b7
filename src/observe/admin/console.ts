import { fileURLToPath } from 'node:url';
import express, { type Router } from 'express';
import { bodiesRefused, wholeNumber } from './api.ts';
import type { Audit } from './audit.ts';
import { whoOf } from './guard.ts';
import { answering, Refused } from './problem.ts';

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
  return answering({
    'GET /': ({ query: { since = 0, after = 0 } }) => source.state(wholeNumber(since), wholeNumber(after)),
    'GET /events/:seq': async (request, response) => {
      if (source.body === undefined) throw bodiesRefused();
      const event = await source.body(wholeNumber(request.params['seq']));
      if (event === null) throw new Refused(404, 'not_found', 'the journal no longer has this event');
      await audit.note({ who: whoOf(response), action: 'show', what: 'events', ids: [event.id] });
      return { body_base64: event.body.toString('base64') };
    },
  });
}
