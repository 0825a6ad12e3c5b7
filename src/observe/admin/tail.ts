import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { RequestHandler, Response } from 'express';
import { messageOf } from '../../core/errors.ts';
import type { Operations } from '../../core/operations.ts';
import { type TailLine, type TailNotice, type TailRequest, tailRequestSchema } from '../../core/tail.ts';
import type { Meter } from '../metrics/meter.ts';
import type { RecentEvent, RecentEvents } from '../metrics/recent.ts';
import { isWanted, type TailEntry, Watcher } from '../metrics/tail.ts';
import type { Audit } from './audit.ts';
import { whoOf } from './guard.ts';
import { parseAs, sendProblem } from './problem.ts';

type Read = Operations['listEvents'];

const MOST_WATCHERS = 10;
/** Lines in one write. */
const AT_ONCE = 200;
/** Milliseconds between two writes. */
const GATHERING_MS = 50;
/** Milliseconds without a line before an empty line is sent. */
const HEARTBEAT_MS = 10_000;

/**
 * `POST /api/tail`: a line of JSON for each entry, until the reader disconnects. Ids are in the body of the request, because URLs
 * end up in logs.
 * @param read reads events from the journal, for --since with bodies; the audit log notes them here
 */
export function tailApi(
  { tail, recent }: Pick<Meter, 'tail' | 'recent'>,
  audit: Audit,
  read: Read,
): RequestHandler {
  return async (request, response) => {
    const wanted = parseAs(tailRequestSchema, request.body);
    if (wanted.bodies && whoOf(response) === 'console')
      return sendProblem(response, 403, 'forbidden', 'a session of the console is shown no bodies here');
    if (tail.size >= MOST_WATCHERS)
      return sendProblem(response, 503, 'overloaded', `${MOST_WATCHERS} others are watching already`);
    const closed = new AbortController();
    response.on('close', () => closed.abort());
    const watcher = new Watcher(wanted);
    const end = tail.watch(watcher);
    try {
      response.status(200).type('application/x-ndjson');
      response.write('\n');
      for await (const text of earlier(recent, wanted, read)) {
        if (text.shown !== null)
          await audit.note({ who: whoOf(response), action: 'show', what: 'events', ids: [text.shown] });
        closed.signal.throwIfAborted();
        if (!response.write(text.line)) await once(response, 'drain', { signal: closed.signal });
      }
      await stream(response, watcher, audit, closed.signal);
    } catch (error) {
      if (!closed.signal.aborted) response.end(textOf({ notice: 'failed', detail: messageOf(error) }));
    } finally {
      end();
    }
  };
}

/** @throws when the connection was closed, or the audit log cannot be written */
async function stream(
  response: Response,
  watcher: Watcher,
  audit: Audit,
  closed: AbortSignal,
): Promise<void> {
  for (;;) {
    const isWoken = await more(watcher, closed);
    const { lost, entries } = watcher.take(AT_ONCE);
    const notice = lost === 0 ? '' : textOf({ notice: 'lost', lines: lost });
    if (watcher.request.bodies) {
      const ids = entries.flatMap(({ event, body }) => (body === null || event === null ? [] : [event.id]));
      await audit.note({ who: whoOf(response), action: 'show', what: 'events', ids: [...new Set(ids)] });
      closed.throwIfAborted();
    }
    const text = notice + entries.map((entry) => textOf(lineOf(entry))).join('');
    // Waits for a slow reader; the watcher drops entries during that time.
    if (!response.write(isWoken ? text : '\n')) await once(response, 'drain', { signal: closed });
    await wait(watcher.isEmpty ? GATHERING_MS : 1, undefined, { signal: closed, ref: false });
  }
}

/** Waits for entries; false when it is time for a heartbeat. */
async function more(watcher: Watcher, closed: AbortSignal): Promise<boolean> {
  closed.throwIfAborted();
  const beat = new AbortController();
  const signal = AbortSignal.any([closed, beat.signal]);
  const something = new Promise<true>((resolve) => {
    watcher.onMore(() => resolve(true));
  });
  try {
    return await Promise.race([something, wait(HEARTBEAT_MS, false, { signal, ref: false })]);
  } finally {
    beat.abort();
  }
}

/**
 * Lines of remembered events since a time, oldest first, with their bodies if asked for.
 * @returns `shown` is the id of an event whose body is in the line
 */
async function* earlier(
  recent: RecentEvents,
  request: TailRequest,
  read: Read,
): AsyncGenerator<{ readonly shown: string | null; readonly line: string }> {
  const { since } = request;
  if (since === null) return;
  const known = recent.after(0);
  const found = known.filter(({ received_at }) => received_at >= since).toReversed();
  const isCut = found.length === known.length && (known.at(-1)?.n ?? 1) > 1;
  if (isCut) yield { shown: null, line: textOf({ notice: 'older' }) };
  for (const event of found) {
    if (!isWanted(request, event.outcome, event, null)) continue;
    const body = request.bodies ? await shownOf(event, known, read) : {};
    const { outcome, received_at: at, n: _n, seq: _seq, ...head } = event;
    const line = textOf({ at: new Date(at).toISOString(), outcome, ...head, ...body });
    yield { shown: body.body_base64 === undefined ? null : event.id, line };
  }
}

/** The body of a remembered event; none when the journal does not have it, because it was quarantined or erased. */
async function shownOf(
  event: RecentEvent,
  known: readonly RecentEvent[],
  read: Read,
): Promise<Pick<TailLine, 'body_base64'>> {
  // A duplicate has the body of the first event.
  const { id, source } = event;
  const seq = event.seq ?? known.find((each) => each.seq !== null && each.id === id && each.source === source)?.seq; // prettier-ignore
  if (event.outcome === 'quarantined' || seq === null || seq === undefined) return {};
  const [found] = await read({ after: seq - 1, limit: 1 });
  if (found?.key !== seq || found.id !== id || found.body_base64 === undefined) return {};
  return { body_base64: found.body_base64 };
}

function lineOf({ at, outcome, event, sink, destination, ms, code, reason, body }: TailEntry): TailLine {
  return {
    at: new Date(at).toISOString(),
    outcome,
    ...event,
    ...(sink === null ? {} : { sink, destination }),
    ...(ms === null ? {} : { ms }),
    ...(code === null ? {} : { code }),
    ...(reason === null ? {} : { reason }),
    ...(body === null ? {} : { body_base64: body.toString('base64') }),
  };
}

function textOf(line: TailLine | TailNotice): string {
  return `${JSON.stringify(line)}\n`;
}
