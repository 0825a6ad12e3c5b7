import { expect, it } from 'vitest';
import type { Delivery, SendResult, Sink, SinkLimits } from '../../src/core/sink.ts';
import { sinkContract, type ContractSubject } from '../../src/sinks/contract.ts';
import type { Arrived } from '../../src/sinks/contract-checks.ts';

const LIMITS: SinkLimits = {
  batchCount: 100,
  batchBytes: 2 ** 22,
  eventBytes: Number.POSITIVE_INFINITY,
  inFlight: 2,
  order: 'user',
  batchBy: 'mixed',
};

/** Brings what it holds to its place when it is closed, unless it is down or forgets about it. */
class Holding implements Sink {
  readonly limits = LIMITS;
  readonly arrived: Arrived[] = [];
  readonly #when: 'closed' | 'never' | 'at once';
  #held: Delivery[] = [];
  #confirmed = Promise.withResolvers<void>();

  constructor(when: 'closed' | 'never' | 'at once') {
    this.#when = when;
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    if (signal.aborted) return Promise.resolve(batch.map(() => ({ status: 'retry', reason: 'stopped' })));
    this.#held.push(...batch.filter(({ event }) => !this.#held.some((held) => held.event.id === event.id)));
    if (this.#when === 'at once') this.#confirmed.resolve();
    return Promise.resolve(batch.map(() => ({ status: 'held', until: this.#confirmed.promise })));
  }

  close(signal: AbortSignal): Promise<void> {
    if (this.#when === 'never' || signal.aborted) return Promise.resolve();
    for (const { event, destination } of this.#held)
      this.arrived.push({ id: event.id, destination, body: event.body });
    this.#held = [];
    this.#confirmed.resolve();
    return Promise.resolve();
  }
}

function subjectOf(when: 'closed' | 'never' | 'at once'): () => Promise<ContractSubject> {
  return () => {
    const sink = new Holding(when);
    return Promise.resolve({
      sink,
      destinations: ['second'],
      arrived: () => Promise.resolve(sink.arrived),
      outage: { begin: () => Promise.resolve(), end: () => Promise.resolve() },
      dispose: () => Promise.resolve(),
    });
  };
}

async function failing(when: 'closed' | 'never' | 'at once'): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run, skip } of await sinkContract(subjectOf(when)))
    if (skip === undefined) await run().catch(() => failed.push(name));
  return failed;
}

it('is kept by a sink that holds what it is sent, and confirms it when it closes', async () => {
  expect(await failing('closed')).toEqual([]);
});

it('is not kept by a sink that never confirms, nor by one that does so before the events are there', async () => {
  expect(await failing('never')).toContain('answers once for each delivery, and what is delivered arrives');
  expect(await failing('at once')).toEqual([
    'never refuses or claims an event while the far side is down, and recovers',
  ]);
});
