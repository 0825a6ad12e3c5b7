import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type NextFunction, type Request, type Response } from 'express';
import type { ProblemCode } from './outcome.ts';

/** Answers a request that is no delivery. */
export type Refuse = (
  request: IncomingMessage,
  response: ServerResponse,
  code: ProblemCode,
  detail: string,
) => void;

/**
 * Everything that is not the plain case: other methods, other paths, and spellings of the right path that the fast
 * comparison in front does not know (upper case, a slash at the end, absolute URLs).
 */
export function createFallback(
  path: string,
  deliver: (request: IncomingMessage, response: ServerResponse) => void,
  refuse: Refuse,
): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const route = path.replace(/[{}()[\]+?!:*\\]/g, '\\$&');
  app.post(route, deliver);
  app.all(route, (request, response) => {
    response.setHeader('allow', 'POST');
    refuse(request, response, 'method_not_allowed', 'deliveries are POST requests');
  });
  app.use((request, response) => refuse(request, response, 'not_found', 'there is nothing at this path'));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    // A path that cannot be decoded is a 400 to express; what else comes here is a fault of ours.
    if (error instanceof URIError || (error instanceof Error && 'status' in error && error.status === 400))
      refuse(request, response, 'not_found', 'there is nothing at this path');
    else refuse(request, response, 'internal', 'the request could not be handled');
  });
  return app;
}
