import express, { type Router } from 'express';
import { callable } from '../../lib/listen.ts';
import { guard, requireLoopback, whoOf } from './guard.ts';
import { sendProblem } from './problem.ts';
import { LINK_AGE, type Tokens } from './tokens.ts';

/**
 * How a browser gets in: a command asks for a code, whose link the page opens; the page turns it into a session's token,
 * which it keeps in its tab. The code stands behind the `#`, so that no log and no other site ever sees it.
 */
export function consoleAccess(tokens: Tokens): Router {
  const api = express.Router();
  api.post('/links', guard(tokens), (_request, response) => {
    // A session must not be able to prolong itself.
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

/** What a person opens. */
export function consoleLink(base: string, code: string): string {
  return `${callable(base)}/console/#code=${code}`;
}
