import type { NextFunction, Request, Response } from 'express';
import { sendProblem } from './problem.ts';
import type { TokenName, Tokens } from './tokens.ts';

type Handler = (request: Request, response: Response, next: NextFunction) => void;

/** Lets in who has a token, and notes by what name: see `whoOf`. */
export function guard(tokens: Tokens): Handler {
  const isLoopback = requireLoopback(tokens);
  return (request, response, next) => {
    isLoopback(request, response, () => {
      const who = tokens.nameOf(request.headers.authorization);
      if (who === null) {
        response.setHeader('WWW-Authenticate', 'Bearer');
        return sendProblem(response, 401, 'unauthorised', NEEDED);
      }
      if (request.method !== 'GET' && request.is('application/json') !== 'application/json') {
        return sendProblem(response, 415, 'media_type_unsupported', 'Content-Type must be application/json');
      }
      response.locals['who'] = who;
      next();
    });
  };
}

const NEEDED =
  'a bearer token is needed: admin.token, or the one in owner.json, which commands find themselves; ' +
  '`millrace console` opens the console';

/** By which token the request came in, behind `guard`. */
export function whoOf(response: Response): TokenName {
  return response.locals['who'] as TokenName;
}

/** Prometheus on the same machine needs no token; where `admin.token` is set it does. */
export function guardMetrics(tokens: Tokens): Handler {
  return tokens.isConfigured ? guard(tokens) : requireLoopback(tokens);
}

/**
 * Without a configured token, refuses requests that name another host: a name of the attacker's own that resolves to
 * loopback (DNS rebinding) would make our pages part of his site.
 */
export function requireLoopback(tokens: Tokens): Handler {
  return (request, response, next) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    if (tokens.isConfigured || LOOPBACK.test(host)) return next();
    sendProblem(response, 403, 'forbidden', 'the admin listener answers only to a loopback host');
  };
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
