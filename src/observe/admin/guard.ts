import type { RequestHandler, Response } from 'express';
import { sendProblem } from './problem.ts';
import type { TokenName, Tokens } from './tokens.ts';

/** Requires a token, and remembers its name for `whoOf`. */
export function guard(tokens: Tokens): RequestHandler {
  const isLoopback = requireLoopback(tokens);
  return (request, response, next) => {
    isLoopback(request, response, () => {
      const who = tokens.nameOf(request.headers.authorization);
      if (who === null) {
        response.setHeader('WWW-Authenticate', 'Bearer');
        return sendProblem(response, 401, 'unauthorised', TOKEN_NEEDED);
      }
      if (request.method !== 'GET' && request.is('application/json') !== 'application/json') {
        return sendProblem(response, 415, 'media_type_unsupported', 'Content-Type must be application/json');
      }
      response.locals['who'] = who;
      next();
    });
  };
}

const TOKEN_NEEDED =
  'a bearer token is needed: admin.token, or the one in owner.json, which commands find themselves; ' +
  '`millrace console` opens the console';

/** The name of the request's token, after `guard`. */
export function whoOf(response: Response): TokenName {
  return response.locals['who'] as TokenName;
}

/** Metrics need a token only when `admin.token` is set. */
export function guardMetrics(tokens: Tokens): RequestHandler {
  return tokens.isConfigured ? guard(tokens) : requireLoopback(tokens);
}

/** Without `admin.token`, refuses other host names: an attacker's name could resolve to loopback (DNS rebinding). */
export function requireLoopback(tokens: Tokens): RequestHandler {
  return (request, response, next) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    if (tokens.isConfigured || LOOPBACK.test(host)) return next();
    sendProblem(response, 403, 'forbidden', 'the admin listener answers only to a loopback host');
  };
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
