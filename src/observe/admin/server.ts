import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { CATALOGUE, MillraceError, messageOf } from '../../core/errors.ts';
import type { Erasures } from '../../core/erasure.ts';
import type { FlushedSink, Operations } from '../../core/operations.ts';
import { bracketed, createServer, startListening } from '../../lib/listen.ts';
import { activityApi, type ActivityBoard } from './activities.ts';
import { type Audit, auditedErasures, auditedOperations } from './audit.ts';
import { createApi, erasureApi, replayApi, searchApi } from './api.ts';
import { consoleApi, consolePages, type ConsoleSource } from './console.ts';
import { consoleAccess } from './console-access.ts';
import type { EventSearch } from './event-search.ts';
import { filesApi, type SinkArchive } from './archive-files.ts';
import { guard, guardMetrics, requireLoopback, whoOf } from './guard.ts';
import { addHealth, type Health } from './health.ts';
import { answering, Refused, sendProblem } from './problem.ts';
import { tailApi, type TailSource } from './tail.ts';
import type { Replays } from './replays.ts';
import type { Tokens } from './tokens.ts';

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  readonly tokens: Tokens;
  /** Notes who has seen and done what. */
  readonly audit: Audit;
  readonly operations: Operations;
  /** Left out where nothing can be erased. */
  readonly erasures?: Erasures;
  /** Where commands say how far they are. */
  readonly board: ActivityBoard;
  readonly health: () => Health;
  /** Everything that is measured, as Prometheus reads it. */
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Null where no journal is kept that could be searched. */
  readonly search: EventSearch | null;
  /** Null serves no console. */
  readonly console: ConsoleSource | null;
  /** Those that the console starts; null where none can be. */
  readonly replays: Replays | null;
  /** Those whose files the console lists. */
  readonly archives: () => readonly SinkArchive[];
  /** Has sinks close their open files; null names all of them. */
  readonly flush: (sinks: readonly string[] | null) => Promise<readonly FlushedSink[]>;
  /** What happens, for those who watch it. */
  readonly meter: TailSource;
  /** Reads the config again, as SIGHUP does; left out where that cannot be. */
  readonly reload?: () => Promise<void>;
}

export interface Admin {
  /** Base URL, without a path. */
  readonly url: string;
  close(): Promise<void>;
}

/** The operator's listener: health for a supervisor, metrics, the console, and the admin API that the commands use. */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, createAdminApp(options));
  const { host, port: wanted } = options;
  const port = await startListening(server, { host, port: wanted }).catch((error: unknown) => {
    const detail = `${bracketed(host)}:${wanted} (admin.host and admin.port, or MILLRACE_ADMIN_PORT): ${messageOf(error)}`;
    throw new MillraceError('address_unavailable', detail, { cause: error });
  });
  return {
    url: `http://${bracketed(host)}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function createAdminApp(options: AdminOptions): Express {
  const { tokens, audit, operations, erasures, search, replays, console: source } = options;
  const app = express();
  const guarded = [guard(tokens), express.json()];
  app.disable('x-powered-by');
  app.use(setHeaders);
  addHealth(app, options.health);
  app.get('/metrics', guardMetrics(tokens), async (_request, response) => {
    const { contentType, text } = await options.metrics();
    response.setHeader('content-type', contentType);
    response.send(text);
  });
  app.use('/api/activities', guarded, activityApi(options.board));
  if (source !== null) {
    app.use('/console', requireLoopback(tokens), consolePages());
    app.use('/api/console', consoleAccess(tokens));
    app.use('/api/console/files', guard(tokens), filesApi(options.archives));
    app.use('/api/console', guard(tokens), consoleApi(source, audit));
  }
  if (erasures !== undefined)
    app.use(
      '/api/erasures',
      guarded,
      erasureApi((response) => auditedErasures(erasures, audit, whoOf(response))),
    );
  if (search !== null) app.use('/api/search', guarded, searchApi(search));
  if (replays !== null) app.use('/api/replays', guarded, replayApi(replays, audit));
  const flush = async (body: unknown) => ({ flushed: await options.flush(namesIn(body)) });
  app.use('/api/flush', guarded, answering({ 'POST /': ({ body }) => flush(body) }));
  app.post('/api/tail', guarded, tailApi(options.meter, audit, operations.listEvents));
  const { reload } = options;
  if (reload !== undefined)
    app.post('/api/reload', guard(tokens), async (_request, response) => {
      await reload();
      response.json({ reloaded: true });
    });
  app.use(
    '/api',
    guarded,
    createApi(
      (response) => auditedOperations(operations, audit, whoOf(response)),
      (response) => whoOf(response) !== 'console' || source?.body !== undefined,
    ),
  );
  app.use((_request, response) => sendProblem(response, 404, 'not_found', 'no such path'));
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    if (error instanceof Refused) return sendProblem(response, error.status, error.code, error.message);
    if (error instanceof MillraceError && error.code === 'usage')
      return sendProblem(response, 400, 'usage', error.detail);
    const status = unreadable(error);
    if (status !== null) return sendProblem(response, status, 'body_malformed', messageOf(error));
    if (error instanceof MillraceError && error.code === 'journal_unknown')
      return sendProblem(response, CATALOGUE.journal_unknown.status, error.code, error.detail);
    sendProblem(response, 500, error instanceof MillraceError ? error.code : 'internal', messageOf(error));
  });
  return app;
}

/** `sinks` of a body: a list of names, or null when it is left out. */
function namesIn(body: unknown): readonly string[] | null {
  const { sinks } = Object(body) as { sinks?: unknown };
  if (sinks === undefined) return null;
  if (Array.isArray(sinks) && sinks.every((name) => typeof name === 'string')) return sinks;
  throw new MillraceError('usage', 'sinks must be a list of names');
}

/** Pages run our own files only, stand in no frame, and their answers are read by no other site. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const;

function setHeaders(_request: Request, response: Response, next: NextFunction): void {
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  next();
}

/** Status of a request that express could not read: no JSON, too large, of an unknown encoding. */
function unreadable(error: unknown): number | null {
  const status = error instanceof Error && 'status' in error ? error.status : null;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : null;
}
