import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { CATALOGUE, MillraceError, messageOf } from '../../core/errors.ts';
import type { Erasures } from '../../core/erasure.ts';
import type { FlushedSink, Operations } from '../../core/operations.ts';
import { bracketed, closeNow, createServer, startListening } from '../../lib/listen.ts';
import type { Meter } from '../metrics/meter.ts';
import { activityApi, type ActivityBoard } from './activities.ts';
import { type Audit, auditedErasures, auditedOperations } from './audit.ts';
import { createApi, erasureApi, flushApi, replayApi, searchApi } from './api.ts';
import { consoleAccess, consoleApi, consolePages, type ConsoleSource } from './console.ts';
import type { EventSearch } from './event-search.ts';
import { filesApi, type SinkArchive } from './archive-files.ts';
import { guard, guardMetrics, requireLoopback, whoOf } from './guard.ts';
import { addHealth, type Health } from './health.ts';
import { Refused, sendProblem } from './problem.ts';
import { tailApi } from './tail.ts';
import type { Replays } from './replays.ts';
import type { Tokens } from './tokens.ts';

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  readonly tokens: Tokens;
  readonly audit: Audit;
  readonly operations: Operations;
  readonly erasures?: Erasures;
  /** Progress of commands beside the receiver. */
  readonly board: ActivityBoard;
  readonly health: () => Health;
  /** Metrics in the format of Prometheus. */
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Null without a local journal. */
  readonly search: EventSearch | null;
  /** Null without a console. */
  readonly console: ConsoleSource | null;
  /** Replays of the console; null when it cannot start any. */
  readonly replays: Replays | null;
  /** Archives whose files the console lists. */
  readonly archives: () => readonly SinkArchive[];
  /** Closes open files of these sinks; null means all sinks. */
  readonly flush: (sinks: readonly string[] | null) => Promise<readonly FlushedSink[]>;
  readonly meter: Pick<Meter, 'tail' | 'recent'>;
  /** Reads the config again, as SIGHUP does. */
  readonly reload?: () => Promise<void>;
}

/** The admin listener: health, metrics, the console, and the admin API for commands. */
export async function startAdmin(options: AdminOptions) {
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, createAdminApp(options));
  const { host, port: wanted } = options;
  const port = await startListening(server, { host, port: wanted }).catch((error: unknown) => {
    const detail = `${bracketed(host)}:${wanted} (admin.host and admin.port, or MILLRACE_ADMIN_PORT): ${messageOf(error)}`;
    throw new MillraceError('address_unavailable', detail, { cause: error });
  });
  return {
    /** Base URL, without a path. */
    url: `http://${bracketed(host)}:${port}`,
    close: () => closeNow(server),
  };
}

function createAdminApp(options: AdminOptions): Express {
  const { tokens, audit, operations, erasures, search, replays, console: source } = options;
  const app = express();
  const guarded = [guard(tokens), express.json()];
  app.disable('x-powered-by');
  app.use((_request, response, next) => {
    response.set(HEADERS);
    next();
  });
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
  app.use('/api/flush', guarded, flushApi(options.flush));
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

/** Pages run our own files only and in no frame, and other sites cannot read the answers. */
const HEADERS = {
  'content-security-policy':
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** Status of a request that express could not read; null for another error. */
function unreadable(error: unknown): number | null {
  const status = error instanceof Error && 'status' in error ? error.status : null;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : null;
}
