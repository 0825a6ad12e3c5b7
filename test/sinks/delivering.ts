import { onTestFinished } from 'vitest';
import type { Sink } from '../../src/core/sink.ts';
import type { Dispatcher, DispatcherOptions } from '../../src/deliver/dispatcher.ts';
import { makeDispatcher } from '../deliver/running.ts';
import { ArrayJournal, ManualClock } from '../deliver/support.ts';
import { until } from '../support/until.ts';

export interface Delivering {
  readonly journal: ArrayJournal;
  readonly dispatcher: Dispatcher;
  /** Waits for it; the timers of the dispatcher fire as fast as they can. */
  readonly settled: (what: string, ask: () => boolean) => Promise<unknown>;
  /** Waits until a sink is done with that many events, delivered or dead. */
  readonly delivered: (sink: string, count: number) => Promise<unknown>;
}

/** Sinks behind the real dispatcher, stopped after the test. @param targetsOf without it every event goes to the default place of each */
export async function startDelivering(
  named: Readonly<Record<string, Sink>>,
  targetsOf?: DispatcherOptions['targetsOf'],
): Promise<Delivering> {
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const sinks = new Map(Object.entries(named));
  const dispatcher = makeDispatcher({
    journal,
    clock,
    maxPending: 100,
    maxPendingBytes: 64 * 2 ** 20,
    targetsOf: targetsOf ?? (() => [...sinks.keys()].map((sink) => ({ sink, destination: null }))),
  });
  onTestFinished(() => dispatcher.stop(AbortSignal.abort()));
  await Promise.all(Array.from(sinks, ([name, sink]) => dispatcher.add(name, sink)));
  dispatcher.begin();
  const settled = (what: string, ask: () => boolean): Promise<unknown> =>
    until(what, () => {
      clock.next();
      return ask();
    });
  const delivered = (sink: string, count: number): Promise<unknown> =>
    settled(`${count} events settled at ${sink}`, () => journal.cursors.get(sink) === count);
  return { journal, dispatcher, settled, delivered };
}
