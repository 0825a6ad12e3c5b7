import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { ClaimCheck, Delivery, SendResult } from '../core/sink.ts';
import type { Item } from './send-queue.ts';
import type { SinkCalls } from './sink-calls.ts';

export interface Outcome {
  readonly item: Item;
  readonly result: SendResult;
}

/**
 * Sends one batch and finds out what became of each item.
 *
 * Events above the sink's own limit are refused without being sent; where there is a keeper a pointer is sent in their place, after
 * the rest of the batch. A batch that is refused without saying which event
 * is to blame is halved until it is one event, sent alone; halves go one after the other, and nothing of a user follows an earlier
 * event of that user that has to be tried again.
 */
export async function sendBatch(
  sink: SinkCalls,
  batch: readonly Item[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  // In the order of the batch: what has to be sent again is sent again in the order it is answered in.
  const outcomes = inOrder(await sendFitting(sink, batch, signal), batch);
  if (!sink.keeps || !outcomes.some(isTooLarge)) return outcomes;
  const settled: Outcome[] = [];
  const waiting = new Map<string, SendResult>();
  // One after the other: each is large, and nothing of a user follows what has to be sent again.
  for (const outcome of outcomes) {
    const { item } = outcome;
    const held = item.key === null ? undefined : waiting.get(item.key);
    let { result } = outcome;
    if (isTooLarge(outcome)) result = held ?? (await sendPointer(sink, item, signal)).result;
    if (result.status === 'retry' && item.key !== null) waiting.set(item.key, result);
    settled.push({ item, result });
  }
  return settled;
}

function inOrder(outcomes: Outcome[], batch: readonly Item[]): Outcome[] {
  if (outcomes.every(({ item }, place) => item === batch[place])) return outcomes;
  const places = new Map(batch.map((item, place) => [item, place]));
  const placeOf = ({ item }: Outcome): number => places.get(item) ?? 0;
  return outcomes.toSorted((one, other) => placeOf(one) - placeOf(other));
}

function isTooLarge({ result }: Outcome): boolean {
  return result.status === 'refused' && result.code === TOO_LARGE;
}

async function sendPointer(sink: SinkCalls, item: Item, signal: AbortSignal): Promise<Outcome> {
  try {
    const pointer = pointerTo(item.event, await sink.keep(item.event, signal));
    const [result = MISSING] = await callSink(
      sink,
      [{ event: pointer, destination: item.destination }],
      signal,
    );
    return { item, result };
  } catch (error) {
    return { item, result: { status: 'retry', reason: `claim check: ${messageOf(error)}` } };
  }
}

/** The event a sink gets instead of one that is too large for it: same metadata, and a body that says where to look. */
function pointerTo(event: JournalEvent, claim: ClaimCheck): JournalEvent {
  const body = Buffer.from(JSON.stringify({ claim_check: claim }));
  return { ...event, body, handling: { ...event.handling, claimCheck: true } };
}

async function sendFitting(sink: SinkCalls, batch: readonly Item[], signal: AbortSignal): Promise<Outcome[]> {
  const limit = sink.limits.eventBytes;
  const fits = ({ event, refusal }: Item): boolean => refusal === null && event.body.length <= limit;
  const fitting = batch.every(fits) ? batch : batch.filter(fits);
  const outcomes = fitting.length === 0 ? [] : await attempt(sink, fitting, signal);
  if (fitting.length === batch.length) return outcomes;
  for (const item of batch) {
    if (item.refusal !== null) {
      outcomes.push({ item, result: { status: 'refused', code: NOT_REDACTED, reason: item.refusal } });
      continue;
    }
    const size = item.event.body.length;
    if (size <= limit) continue;
    const reason = `body of ${size} bytes is above the sink's limit of ${limit}`;
    outcomes.push({ item, result: { status: 'refused', code: TOO_LARGE, reason } });
  }
  return outcomes;
}

async function attempt(sink: SinkCalls, batch: readonly Item[], signal: AbortSignal): Promise<Outcome[]> {
  const results = await callSink(sink, batch, signal);
  const outcomes: Outcome[] = [];
  const suspects: Item[] = [];
  for (const [index, item] of batch.entries()) {
    const result = results[index] ?? MISSING;
    if (result.status === 'refused' && result.batch === true) suspects.push(item);
    else outcomes.push({ item, result });
  }
  if (suspects.length === 0) return outcomes;
  // Only what was sent alone is surely to blame.
  if (batch.length === 1) return suspects.map((item) => ({ item, result: results[0] ?? MISSING }));
  const places = new Map(batch.map((item, place) => [item, place]));
  const middle = Math.ceil(suspects.length / 2);
  for (const half of [suspects.slice(0, middle), suspects.slice(middle)]) {
    const waiting = new Map<string, { place: number; result: SendResult }>();
    for (const { item, result } of outcomes) {
      const { key } = item;
      const place = places.get(item) ?? 0;
      if (result.status !== 'retry' || key === null) continue;
      if (place < (waiting.get(key)?.place ?? Infinity)) waiting.set(key, { place, result });
    }
    const free: Item[] = [];
    for (const item of half) {
      const held = waiting.get(item.key ?? '');
      // What waits behind it is no reason to leave it untried: it is what that waits for.
      if (held === undefined || (places.get(item) ?? 0) < held.place) free.push(item);
      else outcomes.push({ item, result: held.result });
    }
    if (free.length > 0) outcomes.push(...(await attempt(sink, free, signal)));
  }
  return outcomes;
}

async function callSink(
  sink: SinkCalls,
  batch: readonly Delivery[],
  signal: AbortSignal,
): Promise<SendResult[]> {
  // The rest of a batch must not leave when its sink has stopped: by then other routes may redact it.
  if (signal.aborted) return batch.map(() => STOPPED);
  try {
    return await sink.send(batch, signal);
  } catch (error) {
    return batch.map(() => ({ status: 'retry', reason: messageOf(error), sink: true }));
  }
}

/** The code of a refusal that a claim check can get around. */
const TOO_LARGE = 'too_large';
/** Of an event that nothing may leave of. */
const NOT_REDACTED = 'not_redacted';

const STOPPED: SendResult = { status: 'retry', reason: 'the sink is being closed', sink: true };
const MISSING: SendResult = { status: 'retry', reason: 'the sink gave no result', sink: true };
