import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { RequestHandler, Response } from 'express';
import { messageOf } from '../../core/errors.ts';
import type { Operations } from '../../core/operations.ts';
import { type TailLine, type TailNotice, type TailRequest, tailRequestSchema } from '../../core/tail.ts';
import type { RecentEvent, RecentEvents } from '../metrics/recent.ts';
import { isWanted, type Tail, type TailEntry, Watcher } from '../metrics/tail.ts';
import type { Audit } from './audit.ts';
import { whoOf } from './guard.ts';
import { bodyOf, sendProblem } from './problem.ts';

export interface TailSource {
  readonly tail: Tail;
  readonly recent: RecentEvents;
}

type Read = Operations['listEvents'];

/** Each costs the receiver a little. */
const MOST_WATCHERS = 10;
/** Lines that are written in one go; between two of these the receiver has its turn. */
const AT_ONCE = 200;
/** Milliseconds in which lines gather. */
const GATHERING = 50;
/** Milliseconds without a line after which an empty one says that both are still there. */
const HEARTBEAT = 10_000;

/**
 * `POST /api/tail`: a line of JSON for each thing that happens, until whoever asked goes away. Ids are in the request's
 * body only: addresses end up in logs.
 * @param read what came in before, from the journal; it is noted here
 */
export function tailApi({ tail, recent }: TailSource, audit: Audit, read: Read): RequestHandler {
  return async (request, response) => {
    const wanted = bodyOf(tailRequestSchema, request);
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
      await stream(response, { watcher, audit, closed: closed.signal });
    } catch (error) {
      if (!closed.signal.aborted) response.end(textOf({ notice: 'failed', detail: messageOf(error) }));
    } finally {
      end();
    }
  };
}

interface Streaming {
  readonly watcher: Watcher;
  readonly audit: Audit;
  readonly closed: AbortSignal;
}

/** @throws when it was closed, and when what is to be shown cannot be noted */
async function stream(response: Response, { watcher, audit, closed }: Streaming): Promise<void> {
  for (;;) {
    const isWoken = await more(watcher, closed);
    const { lost, lines } = watcher.take(AT_ONCE);
    const notice = lost === 0 ? '' : textOf({ notice: 'lost', lines: lost });
    if (watcher.wantsBodies) {
      const ids = lines.flatMap(({ event, body }) => (body === null || event === null ? [] : [event.id]));
      await audit.note({ who: whoOf(response), action: 'show', what: 'events', ids: [...new Set(ids)] });
      closed.throwIfAborted();
    }
    const text = notice + lines.map((entry) => textOf(lineOf(entry))).join('');
    // Whoever reads slowly is waited for, and loses what does not fit in the meantime.
    if (!response.write(isWoken ? text : '\n')) await once(response, 'drain', { signal: closed });
    await wait(watcher.isEmpty ? GATHERING : 1, undefined, { signal: closed, ref: false });
  }
}

/** Whether there is something to take; false when it is time to say that nothing has happened. */
async function more(watcher: Watcher, closed: AbortSignal): Promise<boolean> {
  closed.throwIfAborted();
  const beat = new AbortController();
  const signal = AbortSignal.any([closed, beat.signal]);
  const something = new Promise<true>((resolve) => {
    watcher.onMore(() => resolve(true));
  });
  try {
    return await Promise.race([something, wait(HEARTBEAT, false, { signal, ref: false })]);
  } finally {
    beat.abort();
  }
}

/**
 * What came in since, oldest first, as far as it is remembered; with its body, where that was asked for and the journal has it.
 * `shown` is the id of an event whose body is in the line.
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

/** Nothing for what the journal does not have: what is quarantined, or erased since. */
async function shownOf(
  event: RecentEvent,
  known: readonly RecentEvent[],
  read: Read,
): Promise<Pick<TailLine, 'body_base64'>> {
  // A duplicate has the bytes of the one that came first.
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
