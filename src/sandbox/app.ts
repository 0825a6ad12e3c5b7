import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { messageOf } from '../core/errors.ts';
import type { Fault } from './faults.ts';
import { indexPage } from './index-page.ts';
import type { Operation, Reply } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import { Refusal } from './refusal.ts';
import type { World } from './world.ts';

/** Any number of connections can be submitted at once: a million UUIDs are 39 MB. */
const LARGEST_BODY = '64mb';

/** The service as an express application. */
export function createSandboxApp(world: World): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.get('/', (_request, response) => void response.type('html').send(indexPage(OPERATIONS, world)));
  app.use((request, response, next) => misbehave(world, request, response, next));
  const json = express.json({ limit: LARGEST_BODY, strict: false });
  for (const operation of OPERATIONS) {
    const handler = (request: Request, response: Response): Promise<void> =>
      run(world, operation, request, response);
    if (operation.raw === true) app[operation.method](operation.path, handler);
    else app[operation.method](operation.path, json, handler);
  }
  app.use((request, response) => {
    const allow = OPERATIONS.filter(({ path }) => matches(path, request.path)).map(({ method }) =>
      method.toUpperCase(),
    );
    if (allow.length === 0) answer(response, { status: 404, json: { detail: 'Not Found' } });
    else
      answer(response, {
        status: 405,
        json: { detail: 'Method Not Allowed' },
        headers: { allow: allow.join(', ') },
      });
  });
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) =>
    refuse(response, error),
  );
  return app;
}

/** The key is looked at first: without one, nothing is told. */
async function run(world: World, operation: Operation, request: Request, response: Response): Promise<void> {
  try {
    const reply = await handle(world, operation, request, response);
    // First: whoever has the answer relies on it.
    world.commit();
    answer(response, reply);
  } catch (error) {
    refuse(response, error);
  }
}

function handle(
  world: World,
  operation: Operation,
  request: Request,
  response: Response,
): Reply | Promise<Reply> {
  const { keys, teams, options } = world;
  if (operation.auth === 'team') {
    const bearer = teams.get(keys.teamOf(request.headers, options.apiKeyHeader));
    return operation.handle({ world, bearer, request, response });
  }
  const bearer = keys.managementOf(request.headers);
  if (options.plan !== 'scale') throw new Refusal(403, 'The Management API is part of the Scale plan');
  if (request.headers['x-management-key'] === undefined) response.setHeader('deprecation', 'true');
  return operation.handle({ world, bearer, request, response });
}

function answer(response: Response, reply: Reply): void {
  if (reply === null) return;
  // The work is done, but its answer is lost on the way.
  if (response.locals['cut'] === true) {
    response.destroy();
    return;
  }
  response.status(reply.status ?? 200);
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
  response.json(reply.json);
}

function refuse(response: Response, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (error instanceof Refusal) {
    answer(response, { status: error.status, json: error.body, headers: { ...error.headers } });
    return;
  }
  const { status = 500, type = '' } = (typeof error === 'object' ? error : {}) as {
    status?: number;
    type?: string;
  };
  // The rest of a body that is too large is not worth waiting for.
  if (status === 413) response.setHeader('connection', 'close');
  const detail =
    type === 'entity.parse.failed'
      ? [{ loc: ['body'], msg: 'JSON decode error', type: 'json_invalid' }]
      : status < 500
        ? messageOf(error)
        : 'Internal Server Error';
  answer(response, { status: type === 'entity.parse.failed' ? 422 : status, json: { detail } });
}

/** Draws what goes wrong with a request, and lets it. */
function misbehave(world: World, request: Request, response: Response, next: NextFunction): void {
  const fault: Fault | null = world.faults.draw(world.options.signingNow());
  switch (fault?.kind) {
    case undefined:
      return next();
    case 'drop-before':
      request.socket.destroy();
      return;
    case 'drop-after':
      response.locals['cut'] = true;
      return next();
    case 'hang':
      return;
    case 'answer': {
      const { status, headers = {}, body } = fault;
      response.status(status).set(headers);
      if (typeof body === 'string') response.type('text').send(body);
      else response.json(body ?? {});
    }
  }
}

function matches(pattern: string, path: string): boolean {
  return new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+')}/?$`).test(path);
}
