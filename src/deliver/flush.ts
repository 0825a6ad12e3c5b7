import type { Clock } from '../core/clock.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { EventStore } from '../core/journal.ts';
import type { FlushedSink } from '../core/operations.ts';
import { nearest } from '../lib/nearest.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { LiveSinks } from './live-sinks.ts';

/** Milliseconds that a sink has to receive what was accepted before the call. */
const PATIENCE = 5000;

interface FlushParts {
  readonly dispatcher: Dispatcher;
  readonly sinks: LiveSinks;
  readonly store: Pick<EventStore, 'flush'>;
  readonly clock: Clock;
}

/**
 * Makes sinks close the files they keep open, after they have received what was accepted before the call.
 * @param names null for all that keep files open
 * @throws MillraceError usage for a name of no sink, or of one that keeps no files open
 */
export async function flushSinks(
  { dispatcher, sinks, store, clock }: FlushParts,
  names: readonly string[] | null,
): Promise<readonly FlushedSink[]> {
  const able = sinks.names.filter((name) => sinks.get(name)?.flush !== undefined);
  for (const name of names ?? []) refuseOther(name, able, sinks.names);
  return Promise.all(
    (names === null ? able : [...new Set(names)]).map(async (sink): Promise<FlushedSink> => {
      const waiting = !(await passes(dispatcher, sink, clock));
      // What is in a closed file must not look undelivered after a crash.
      await store.flush().catch(() => undefined);
      try {
        return { sink, waiting, files: [], failed: [], ...(await sinks.get(sink)?.flush?.()) };
      } catch (error) {
        return { sink, waiting, files: [], failed: [messageOf(error)] };
      }
    }),
  );
}

function refuseOther(name: string, able: readonly string[], all: readonly string[]): void {
  if (able.includes(name)) return;
  const close = nearest(name, able);
  const advice = close === undefined ? '' : `; did you mean ${close}?`;
  const why = all.includes(name) ? `sinks.${name} keeps no files open` : `there is no sink ${name}${advice}`;
  throw new MillraceError('usage', why);
}

/** Whether the sink has received in time all that is in the journal now. */
function passes(dispatcher: Dispatcher, sink: string, clock: Clock): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const cancel = clock.after(PATIENCE, () => resolve(false));
  void dispatcher.passed(sink, 'sent').then(() => resolve(true));
  return promise.finally(cancel);
}
