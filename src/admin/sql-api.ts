import { hash } from 'node:crypto';
import { once } from 'node:events';
import express, { type Response, type Router } from 'express';
import { z } from 'zod';
import { MillraceError } from '../core/errors.ts';
import { exitOf, lastLineOf, ownCommand, reasonIn } from '../lib/own-command.ts';
import type { Audit } from './audit.ts';
import { bodyOf } from './body.ts';
import type { SinkArchive } from './files-api.ts';
import { whoOf } from './guard.ts';
import { sendProblem } from './problem.ts';
import { SELECTION, selectionArgs } from './replay-orders.ts';

/** What of a receiver the SQL page needs. */
export interface SqlSource {
  /** The config file, for the command that reads. */
  readonly config: string;
  /** Whether bodies may be shown: only then is anything given out. */
  readonly isAllowed: () => boolean;
  readonly archives: () => readonly SinkArchive[];
  /** Tables that can be asked for: the built-in ones, and those that `tables` of the config names. */
  readonly tables: () => Promise<readonly string[]>;
}

const orderSchema = z.strictObject({
  sink: z.string().min(1).max(200),
  table: z.string().min(1).max(200),
  ...SELECTION,
  limit: z.number().int().min(1).max(500_000).default(100_000),
});

type Order = z.output<typeof orderSchema>;

const querySchema = z.strictObject({ query: z.string().min(1).max(100_000) });

/** Excerpts at once: each is a process that reads. */
const MOST = 2;
const MOST_BYTES = '64MiB';

/**
 * What the SQL page asks for. Nothing is queried here: a command beside this process reads some records of an archive and writes
 * them as Parquet, which goes to the browser as it comes, and the browser queries it. Each is noted before anything is sent.
 */
export function sqlApi(source: SqlSource, audit: Audit): Router {
  const api = express.Router();
  let running = 0;
  api.use((_request, response, next) => {
    if (source.isAllowed()) return next();
    sendProblem(response, 403, 'forbidden', 'console.payloads is not set: no data is given out');
  });
  api.get('/', async (_request, response) => {
    const archives = source.archives().map(({ sink, isSealed }) => ({ sink, sealed: isSealed }));
    response.json({ archives, tables: await source.tables() });
  });
  api.post('/data', async (request, response) => {
    const order = bodyOf(orderSchema, request);
    const archive = source.archives().find(({ sink }) => sink === order.sink);
    if (archive === undefined) throw new MillraceError('usage', `${order.sink} has no archive`);
    if (archive.isSealed)
      throw new MillraceError('usage', `${order.sink} is sealed: its records are not opened for a browser`);
    if (!(await source.tables()).includes(order.table))
      throw new MillraceError('usage', `there is no table ${order.table}`);
    if (running === MOST)
      return sendProblem(response, 503, 'overloaded', `${MOST} others are reading already`);
    running += 1;
    try {
      const { sink, table, since, until, types } = order;
      const ids = [sink, table, `${since ?? ''}..${until ?? ''}`, ...types];
      await audit.note({ who: whoOf(response), action: 'show', what: 'archives', ids });
      await send(argsOf(order, archive.path, source.config), response);
    } finally {
      running -= 1;
    }
  });
  api.post('/queries', async (request, response) => {
    const { query } = bodyOf(querySchema, request);
    // Not its text: people write names and values of users into it.
    const ids = [`sha256 ${hash('sha256', query, 'hex')}`, `${query.length} characters`];
    await audit.note({ who: whoOf(response), action: 'query', what: 'archives', ids });
    response.json({ noted: true });
  });
  return api;
}

function argsOf(order: Order, path: string, config: string): string[] {
  return [
    'archive',
    'excerpt',
    `--table=${order.table}`,
    ...selectionArgs(order),
    `--limit=${order.limit}`,
    `--max-bytes=${MOST_BYTES}`,
    `--config=${config}`,
    '--json',
    '--',
    path,
  ];
}

/** Sends what the command writes, at the pace of whoever reads it. No row at all is a 204. */
async function send(args: readonly string[], response: Response): Promise<void> {
  const child = ownCommand(args);
  const [ended, said] = [exitOf(child), lastLineOf(child.stderr)];
  const gone = (): void => void child.kill('SIGKILL');
  response.once('close', gone);
  try {
    let hasBegun = false;
    for await (const piece of child.stdout ?? []) {
      if (response.destroyed) return;
      if (!hasBegun) response.status(200).type('application/vnd.apache.parquet');
      hasBegun = true;
      if (!response.write(piece)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    const code = await ended;
    if (response.destroyed) return;
    const isDone = code === 0 || code === 3;
    if (!hasBegun && !isDone) throw new MillraceError('usage', reasonIn(await said));
    // What has begun and breaks off must not look whole.
    if (!isDone) response.destroy();
    else if (hasBegun) response.end();
    else response.status(204).end();
  } finally {
    response.off('close', gone);
    await ended;
  }
}
