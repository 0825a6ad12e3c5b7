import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { DELIVERED, type SendResult } from '../../src/core/sink.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher } from './running.ts';
import { ArrayJournal, ManualClock, ScriptedSink, until } from './support.ts';

/** A log that gives what is not settled again, under other numbers, each time that it has changed hands. */
class HandedLog extends ArrayJournal {
  readonly #settled = new Set<string>();
  /** What was read before the last hand-over is not to be sent any more. */
  #since = 0;

  get open(): number {
    return new Set(this.events.map(({ id }) => id)).size - this.#settled.size;
  }

  handOver(): void {
    const own = this.events.slice(this.#since).filter(({ id }) => !this.#settled.has(id));
    this.#since = this.events.length;
    for (const event of own) this.put(event);
  }

  maySend({ seq }: Pick<JournalEvent, 'seq'>): boolean {
    return seq > this.#since;
  }

  delivered(_sink: string, { seq }: Pick<JournalEvent, 'seq'>): void {
    const id = this.events[seq - 1]?.id;
    if (id !== undefined && seq > this.#since) this.#settled.add(id);
  }
}

const LATER: SendResult = { status: 'retry', reason: 'later', delayMs: 7 };
const DOWN: SendResult = { status: 'retry', reason: 'down', sink: true };
const USERS = 3;

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ put: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 3, arbitrary: fc.record({ turns: fc.nat(6) }) },
    { weight: 2, arbitrary: fc.record({ answers: fc.array(fc.constantFrom(DELIVERED, LATER, DOWN)) }) },
    { weight: 2, arbitrary: fc.constant('hand over' as const) },
    { weight: 1, arbitrary: fc.constant('time' as const) },
  ),
  { maxLength: 40, size: 'max' },
);

test('events of a user come in order, whenever their log changes hands', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.constantFrom(1, 3),
      fc.constantFrom(2, 10),
      async (all, inFlight, batchCount) => {
        const clock = new ManualClock();
        const journal = new HandedLog();
        let answers: readonly SendResult[] = [];
        let asked = 0;
        const stopped = new Set<string>();
        const sink = new ScriptedSink(
          ({ event }, call) => {
            // As brokers do it: what comes after one of its user that was not taken is not taken either.
            const place = `${call} ${event.user}`;
            if (stopped.has(place)) return LATER;
            const answer = answers[asked % answers.length] ?? DELIVERED;
            asked += 1;
            if (answer !== DELIVERED) stopped.add(place);
            return answer;
          },
          { inFlight, batchCount },
        );
        const dispatcher = makeDispatcher({
          journal,
          clock,
          retry: { initial: 5, max: 20, giveUpAfter: 0 },
          maxPending: 1000,
        });
        await dispatcher.add('a', sink);
        dispatcher.begin();
        let count = 0;
        for (const step of all) {
          if (step === 'hand over') journal.handOver();
          else if (step === 'time') clock.next();
          else if ('answers' in step) ({ answers } = step);
          else if ('turns' in step) for (let n = 0; n < step.turns; n += 1) await new Promise(setImmediate);
          else
            for (let n = 0; n < step.put; n += 1, count += 1)
              journal.put(makeEvent({ id: String(count), user: `u${count % USERS}` }));
        }
        answers = [];
        await until(clock, () => journal.open === 0);
        await dispatcher.stop(AbortSignal.timeout(5000));
        const first = new Set(sink.taken.map(({ event }) => Number(event.id)));
        expect(first.size).toBe(count);
        for (let user = 0; user < USERS; user += 1) {
          const own = [...first].filter((id) => id % USERS === user);
          expect(own).toEqual(own.toSorted((one, other) => one - other));
        }
      },
    ),
    { numRuns: 300 },
  );
});
