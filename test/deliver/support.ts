import { ManualClock } from '../support/manual-clock.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import type { DeadLetter, EventLog } from '../../src/core/journal.ts';
import { parseTarget, type Target } from '../../src/core/route.ts';
import type { Delivery, SendResult, Sink, SinkLimits, SinkLog } from '../../src/core/sink.ts';

export const silentLog: SinkLog = { info: () => {}, warn: () => {}, error: () => {} };

export { ManualClock };

/** Lets promises and timers run until the condition holds; fails the test when nothing is left to happen. */
export async function until(clock: ManualClock, condition: () => boolean): Promise<void> {
  for (let idle = 0; !condition();) {
    for (let turn = 0; turn < 20 && !condition(); turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    if (condition()) return;
    idle = clock.next() ? 0 : idle + 1;
    if (idle > 50) throw new Error('the condition never came true');
  }
}

/** What delivering needs of a journal, over an array. */
export class ArrayJournal implements EventLog {
  readonly events: JournalEvent[] = [];
  readonly deadLetters: Omit<DeadLetter, 'key'>[] = [];
  readonly cursors = new Map<string, number>();
  #listeners = new Set<(seq: number) => void>();

  get lastSeq(): number {
    return this.events.length;
  }

  put(event: Omit<JournalEvent, 'seq' | 'handling'> & Partial<JournalEvent>): void {
    const seq = this.events.length + 1;
    this.events.push({ handling: {}, ...event, seq });
    for (const listener of this.#listeners) listener(seq);
  }

  read(after: number, limits: { count: number; bytes: number }): Promise<readonly JournalEvent[]> {
    const page: JournalEvent[] = [];
    let bytes = 0;
    for (const event of this.events.slice(after, after + limits.count)) {
      bytes += event.body.length;
      if (page.length > 0 && bytes > limits.bytes) break;
      page.push(event);
    }
    return Promise.resolve(page);
  }

  subscribe(listener: (seq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  openCursor(sink: string): Promise<number> {
    return Promise.resolve(this.cursors.get(sink) ?? 0);
  }

  releaseCursor(): void {}

  moveCursor(sink: string, seq: number): void {
    this.cursors.set(sink, seq);
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  addDeadLetter(deadLetter: Omit<DeadLetter, 'key'>): Promise<void> {
    this.deadLetters.push(deadLetter);
    return Promise.resolve();
  }
}

/** Where events go: by their type, unless they say it themselves. */
export function byType(
  routesFor: (type: string) => readonly Target[],
): (event: JournalEvent) => readonly Target[] {
  return ({ type, handling: { only } }) => only?.map(parseTarget) ?? routesFor(type);
}

export const LIMITS: SinkLimits = {
  batchCount: 10,
  batchBytes: 1e6,
  eventBytes: 1e6,
  inFlight: 3,
  order: 'user',
  batchBy: 'mixed',
};

/** A sink that answers as a script says and remembers what it took. */
export class ScriptedSink implements Sink {
  readonly limits: SinkLimits;
  readonly taken: Delivery[] = [];
  readonly batches: number[] = [];
  opens = 0;
  closed = false;
  answer: (delivery: Delivery, call: number) => SendResult;
  openFailures = 0;

  constructor(answer: (delivery: Delivery, call: number) => SendResult, limits: Partial<SinkLimits> = {}) {
    this.answer = answer;
    this.limits = { ...LIMITS, ...limits };
  }

  open(): Promise<void> {
    this.opens += 1;
    return this.opens <= this.openFailures ? Promise.reject(new Error('not there yet')) : Promise.resolve();
  }

  async send(batch: readonly Delivery[]): Promise<SendResult[]> {
    const call = this.batches.push(batch.length);
    await new Promise((resolve) => setImmediate(resolve));
    const results = batch.map((delivery) => this.answer(delivery, call));
    for (const [index, result] of results.entries()) {
      const delivery = batch[index];
      if (result.status === 'delivered' && delivery !== undefined) this.taken.push(delivery);
    }
    return results;
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}
