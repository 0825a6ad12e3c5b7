import { createServer, type Server } from 'node:http';
import { timingSafeEqual, hash } from 'node:crypto';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { Selection } from '../core/journal.ts';
import type { Operations } from '../core/operations.ts';

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  /** Bearer token; null only on loopback. */
  readonly token: string | null;
  readonly operations: Operations;
  /** Whether new deliveries are welcome now. */
  readonly ready: () => boolean;
}

export interface Admin {
  /** Base URL, without a path. */
  readonly url: string;
  close(): Promise<void>;
}

/** The operator's listener: health for a supervisor, and the admin API that the commands use. */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, createAdminApp(options));
  const port = await listen(server, options.host, options.port);
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function createAdminApp({ token, operations, ready }: AdminOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.get('/livez', (_request, response) => void response.json({ status: 'ok' }));
  app.get('/readyz', (_request, response) => {
    const isReady = ready();
    response.status(isReady ? 200 : 503).json({ status: isReady ? 'ready' : 'not ready' });
  });
  const api = express.Router();
  app.use('/api', guard(token), express.json(), api);
  api.get('/status', async (_request, response) => void response.json(await operations.status()));
  api.get('/quarantine', async (request, response) => {
    response.json(await operations.listQuarantine(selectionOf(request.query), wantsBodies(request)));
  });
  api.post('/quarantine/retry', async (request, response) => {
    response.json(await operations.retryQuarantine(selectionOf(request.body)));
  });
  api.post('/quarantine/drop', async (request, response) => {
    response.json({ dropped: await operations.dropQuarantine(selectionOf(request.body)) });
  });
  api.get('/dead-letters', async (request, response) => {
    response.json(await operations.listDeadLetters(selectionOf(request.query), wantsBodies(request)));
  });
  api.post('/dead-letters/retry', async (request, response) => {
    response.json(await operations.retryDeadLetters(selectionOf(request.body)));
  });
  api.post('/dead-letters/drop', async (request, response) => {
    response.json({ dropped: await operations.dropDeadLetters(selectionOf(request.body)) });
  });
  app.use((_request, response) => sendProblem(response, 404, 'not_found', 'no such path'));
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    if (error instanceof MillraceError && error.code === 'usage')
      return sendProblem(response, 400, 'usage', error.detail);
    const status = unreadable(error);
    if (status !== null) return sendProblem(response, status, 'body_malformed', messageOf(error));
    sendProblem(response, 500, error instanceof MillraceError ? error.code : 'internal', messageOf(error));
  });
  return app;
}

/**
 * With a token, only its bearer gets in. Without one the listener is on loopback, and what remains is a web page that
 * the operator's own browser was lured to: it cannot name a loopback host, nor send JSON across origins.
 */
function guard(token: string | null) {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (token !== null) {
      const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
      if (timingSafeEqual(digest(given), digest(token))) return next();
      response.setHeader('WWW-Authenticate', 'Bearer');
      return sendProblem(response, 401, 'unauthorised', 'a bearer token is needed: admin.token');
    }
    const host = (request.headers.host ?? '').replace(/:\d+$/, '');
    if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)) {
      return sendProblem(response, 403, 'forbidden', 'the admin listener answers to a loopback host only');
    }
    if (request.method !== 'GET' && request.is('application/json') !== 'application/json') {
      return sendProblem(response, 415, 'media_type_unsupported', 'Content-Type must be application/json');
    }
    next();
  };
}

/** Status of a request that express could not read: no JSON, too large, of an unknown encoding. */
function unreadable(error: unknown): number | null {
  const status = error instanceof Error && 'status' in error ? error.status : null;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : null;
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

function wantsBodies(request: Request): boolean {
  return request.query['bodies'] === 'true';
}

/** Reads `keys` (comma-separated or a list), `sink`, `limit` and `after`. */
function selectionOf(value: unknown): Selection {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const selection: { -readonly [Key in keyof Selection]: Selection[Key] } = {};
  const { keys, sink } = fields;
  if (keys !== undefined)
    selection.keys = (Array.isArray(keys) ? keys : textOf(keys).split(',')).map(wholeNumber);
  if (typeof sink === 'string') selection.sink = sink;
  if (fields['limit'] !== undefined) selection.limit = wholeNumber(fields['limit']);
  if (fields['after'] !== undefined) selection.after = wholeNumber(fields['after']);
  return selection;
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function wholeNumber(value: unknown): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new MillraceError('usage', 'keys, limit and after must be whole numbers');
  return number;
}

function sendProblem(response: Response, status: number, code: string, detail: string): void {
  response.status(status).type('application/problem+json');
  response.send(JSON.stringify({ type: 'about:blank', title: detail, status, code, detail }));
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        new MillraceError('address_unavailable', `admin ${host}:${port}: ${error.message}`, { cause: error }),
      );
    });
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}
