import { fileURLToPath } from 'node:url';
import express, { type RequestHandler, type Router } from 'express';
import { callable } from '../../lib/listen.ts';
import { bodiesRefused, wholeNumber } from './api.ts';
import type { Audit } from './audit.ts';
import { guard, requireLoopback, whoOf } from './guard.ts';
import { answering, Refused, sendProblem } from './problem.ts';
import { LINK_AGE, type Tokens } from './tokens.ts';

/** What the console shows; the page asks once a second. */
export interface ConsoleSource {
  /**
   * The current state as JSON.
   * @param since milliseconds since the epoch: only later seconds of the history
   * @param after number of the newest event that the page has
   */
  state(since: number, after: number): Promise<object>;
  /** The body of an event; null when the journal no longer has it. Undefined while bodies may not be shown. */
  readonly body?:
    ((seq: number) => Promise<{ readonly id: string; readonly body: Buffer } | null>) | undefined;
}

/** The static files of the page. They hold nothing secret. */
export function consolePages(): RequestHandler {
  return express.static(fileURLToPath(new URL('./console/', import.meta.url)), {
    cacheControl: false,
    setHeaders: (response) => void response.setHeader('cache-control', 'no-cache'),
  });
}

/** The data of the page. */
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

/**
 * Sign-in of browsers. A command asks for a code and prints a link with it; the page exchanges the code for a session's token, which
 * it keeps in its tab. The code is behind the `#`, so that no log and no other site sees it.
 */
export function consoleAccess(tokens: Tokens): Router {
  const api = express.Router();
  api.post('/links', guard(tokens), (_request, response) => {
    // A session must not extend itself.
    if (whoOf(response) === 'console')
      return sendProblem(response, 403, 'forbidden', 'only the token itself can create a link');
    response.json({ code: tokens.newLink(), valid_seconds: LINK_AGE / 1000 });
  });
  api.post('/sessions', requireLoopback(tokens), express.json(), (request, response) => {
    const { code } = Object(request.body) as { code?: unknown };
    const token = typeof code === 'string' ? tokens.redeem(code) : null;
    if (token === null)
      return sendProblem(response, 401, 'unauthorised', 'the link was already used, or has expired');
    response.json({ token });
  });
  api.post('/sign-out', guard(tokens), (request, response) => {
    tokens.endSession(request.headers.authorization);
    response.json({ ended: true });
  });
  return api;
}

/** The link for a browser. */
export function consoleLink(base: string, code: string): string {
  return `${callable(base)}/console/#code=${code}`;
}
