import type { Operation } from './operation.ts';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { messageOf } from '../core/errors.ts';
import type { Fault } from './faults.ts';
import { Refusal } from './check.ts';
import type { World } from './world.ts';
import { bulkOperations, pullOperations } from './routes/pulls.ts';
import { labOperations } from './routes/labs.ts';
import { managementOperations } from './routes/management.ts';
import { healthOperations } from './routes/health.ts';
import { orderOperations } from './routes/orders.ts';
import { parsingJobOperations } from './routes/parsing-jobs.ts';
import { userOperations } from './routes/users.ts';
import { webhookOperations } from './routes/webhooks.ts';

/** A bulk trigger of a million UUIDs has 39 MB. */
const LARGEST_BODY = '64mb';

export function createSandboxApp(world: World): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.get('/', (_request, response) => void response.type('html').send(indexPage(OPERATIONS, world)));
  app.use((request, response, next) => misbehave(world, request, response, next));
  const json = express.json({ limit: LARGEST_BODY, strict: false });
  for (const { method, path, run } of OPERATIONS) {
    // The operation reads an upload itself.
    app[method](path, json, async (request, response) => {
      const reply = await run(world, request, response);
      if (reply !== null) answer(response, reply);
    });
  }
  app.use((request, response) => {
    const allow = OPERATIONS.filter(({ path }) => matches(path, request.path));
    if (allow.length === 0) throw new Refusal(404, 'Not Found');
    response.setHeader('allow', allow.map(({ method }) => method.toUpperCase()).join(', '));
    throw new Refusal(405, 'Method Not Allowed');
  });
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) =>
    refuse(response, error),
  );
  return app;
}

function answer(response: Response, json: object): void {
  // The fault `drop-after`.
  if (response.locals['cut'] === true) response.destroy();
  else response.json(json);
}

function refuse(response: Response, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const refusal = error instanceof Refusal ? error : refusalOf(error);
  // Not waiting for the rest of a body that is too large.
  if (refusal !== error && refusal.status === 413) response.setHeader('connection', 'close');
  answer(response.status(refusal.status), { detail: refusal.detail });
}

/** For errors of express, mostly of bodies. */
function refusalOf(error: unknown): Refusal {
  const { status = 500, type = '' } = Object(error) as { status?: number; type?: string };
  if (type === 'entity.parse.failed')
    return new Refusal(422, [{ loc: ['body'], msg: 'JSON decode error', type: 'json_invalid' }]);
  return new Refusal(status, status < 500 ? messageOf(error) : 'Internal Server Error');
}

/** Draws a fault for a request, and carries it out. */
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

/** A page that lists the operations, for a browser. */
function indexPage(operations: readonly Operation[], { users, team, options }: World): string {
  const all = users.list(team.id);
  const rows = operations.map(({ method, path, auth, title }) => {
    const key = auth === 'team' ? options.apiKeyHeader : 'X-Management-Key';
    return `${method.toUpperCase().padEnd(6)} ${path}\n       ${title} (${key})`;
  });
  const text = [
    'A stand-in of a health data and lab testing service. Everything in it is made up.',
    `Team ${team.id} has ${all.length} users.`,
    ...all
      .slice(0, 1)
      .map(({ id }) => `Try /v2/summary/meal/${id}?start_date=2026-01-01&end_date=2026-01-07`),
    '',
    ...rows,
  ].join('\n');
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>millrace sandbox</title><pre>${escaped}</pre>`;
}

/** Every operation of the service, in the order of its page. */
export const OPERATIONS: readonly Operation[] = [
  ...healthOperations,
  ...bulkOperations,
  ...pullOperations,
  ...userOperations,
  ...labOperations,
  ...orderOperations,
  ...parsingJobOperations,
  ...managementOperations,
  ...webhookOperations,
];
