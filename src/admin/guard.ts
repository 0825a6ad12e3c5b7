import { timingSafeEqual, hash } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { sendProblem } from './problem.ts';

type Handler = (request: Request, response: Response, next: NextFunction) => void;

/**
 * With a token, only its bearer gets in. Without one the listener is on loopback, and what remains is a web page that
 * the operator's own browser was lured to: it cannot name a loopback host, nor send JSON across origins.
 */
export function guard(token: string | null): Handler {
  const isLoopback = requireLoopback(token);
  return (request, response, next) => {
    if (token !== null) {
      const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
      if (timingSafeEqual(digest(given), digest(token))) return next();
      response.setHeader('WWW-Authenticate', 'Bearer');
      return sendProblem(response, 401, 'unauthorised', 'a bearer token is needed: admin.token');
    }
    isLoopback(request, response, () => {
      if (request.method !== 'GET' && request.is('application/json') !== 'application/json') {
        return sendProblem(response, 415, 'media_type_unsupported', 'Content-Type must be application/json');
      }
      next();
    });
  };
}

/**
 * Without a token, refuses requests that name another host: a name of the attacker's own that resolves to loopback
 * (DNS rebinding) would make our pages part of his site.
 */
export function requireLoopback(token: string | null): Handler {
  return (request, response, next) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    if (token !== null || LOOPBACK.test(host)) return next();
    sendProblem(response, 403, 'forbidden', 'the admin listener answers to a loopback host only');
  };
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');
