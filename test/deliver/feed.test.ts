import { expect, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import { DELIVERED, type SendResult } from '../../src/core/sink.ts';
import type { Refusal } from '../../src/deliver/memory-log.ts';
import { makeEvent } from '../support/events.ts';
import { feedOf } from './running.ts';
import { ArrayJournal, ScriptedSink, until } from './support.ts';

const REFUSED: SendResult = { status: 'refused', code: 'bad', reason: 'not this' };
const DOWN: SendResult = { status: 'retry', reason: 'down', sink: true };

/** A journal that holds events before anybody reads it: they are loaded at once. */
function filled<J extends ArrayJournal>(journal: J, count: number): J {
  for (let n = 1; n <= count; n += 1) journal.put(makeEvent({ id: `e${n}` }));
  return journal;
}

const turns = async (count = 30): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A journal that is asked to keep dead letters, and says when. */
class SlowDeadLetters extends ArrayJournal {
  answers: PromiseWithResolvers<void>[] = [];

  override async addDeadLetter(refusal: Refusal): Promise<void> {
    const answer = Promise.withResolvers<void>();
    this.answers.push(answer);
    await answer.promise;
    await super.addDeadLetter(refusal);
  }
}

test('the cursor passes a refused event only when its dead letter is stored', async () => {
  const journal = new SlowDeadLetters();
  const { put, cursor } = await feedOf(new ScriptedSink(() => REFUSED), { journal });
  put(1);
  await turns();
  expect(journal.answers).toHaveLength(1);
  expect(cursor()).toBe(0);
  journal.answers[0]?.resolve();
  await turns();
  expect(cursor()).toBe(1);
  expect(journal.deadLetters).toMatchObject([{ sink: 'a', code: 'bad', attempts: 1, event: { id: 'e1' } }]);
});

test('a dead letter that cannot be stored settles nothing: the batch is sent again, and none is lost', async () => {
  const journal = filled(new SlowDeadLetters(), 3);
  const sink = new ScriptedSink(({ event }) => (event.id === 'e2' ? REFUSED : DELIVERED));
  const { cursor, clock, dispatcher } = await feedOf(sink, { journal });
  await turns();
  journal.answers[0]?.reject(new Error('no space left'));
  await turns();
  expect(dispatcher.status()).toMatchObject([{ lastError: 'no space left', delivered: 0 }]);
  expect(cursor()).toBe(0);
  await until(clock, () => journal.answers.length === 2);
  journal.answers[1]?.resolve();
  await until(clock, () => cursor() === 3);
  expect(journal.deadLetters.map(({ event }) => event.id)).toEqual(['e2']);
  expect(dispatcher.status()).toMatchObject([{ delivered: 2, dead: 1, pending: 0 }]);
});

test('calls that fail side by side are one failure: the sink is tried again after its first pause', async () => {
  const sink = new ScriptedSink((_, call) => (call <= 16 ? DOWN : DELIVERED), {
    batchCount: 1,
    inFlight: 16,
    order: 'none',
  });
  const { cursor, clock, dispatcher } = await feedOf(sink, { journal: filled(new ArrayJournal(), 30) });
  await turns();
  expect(dispatcher.status()).toMatchObject([{ lastError: 'down', retried: 16 }]);
  await until(clock, () => cursor() === 30);
  // Of the first pause at most, `initial`; a pause of 16 failures is ten times as long.
  expect(clock.monotonic()).toBeLessThanOrEqual(100);
});

test('cursors are on disk before the sink closes its files', async () => {
  const steps: string[] = [];
  class Noting extends ArrayJournal {
    override flush(): Promise<void> {
      steps.push(`flush at ${this.cursors.get('a')}`);
      return super.flush();
    }
  }
  const sink = new ScriptedSink(() => DELIVERED);
  const close = sink.close.bind(sink);
  sink.close = () => {
    steps.push('close');
    return close();
  };
  const { dispatcher } = await feedOf(sink, { journal: filled(new Noting(), 5) });
  await dispatcher.stop(AbortSignal.timeout(5000));
  expect(steps).toEqual(['flush at 5', 'close']);
});

test('a sink that will not close does not keep the others from it', async () => {
  const sink = new ScriptedSink(() => DELIVERED);
  sink.close = () => Promise.reject(new Error('will not'));
  const { dispatcher } = await feedOf(sink);
  const other = new ScriptedSink(() => DELIVERED);
  await dispatcher.add('b', other);
  await dispatcher.stop(AbortSignal.timeout(5000));
  expect(other.closed).toBe(true);
});

test('while it stops a sink gets what is loaded and no more; in trouble it gets nothing more', async () => {
  const sink = new ScriptedSink(() => DOWN);
  const { put, dispatcher, cursor } = await feedOf(sink);
  put(30);
  await turns();
  expect(dispatcher.status()).toMatchObject([{ lastError: 'down' }]);
  const sent = sink.batches.length;
  sink.answer = () => DELIVERED;
  await dispatcher.stop(AbortSignal.timeout(5000));
  expect(sink.batches).toHaveLength(sent);
  expect([cursor(), sink.closed]).toEqual([0, true]);
});

test('after trouble one batch tries the sink; the others follow once it got through', async () => {
  const sink = new ScriptedSink(() => DOWN, { batchCount: 5, inFlight: 4, order: 'none' });
  const { clock, cursor } = await feedOf(sink, { journal: filled(new ArrayJournal(), 40) });
  await turns();
  expect(sink.batches).toHaveLength(4);
  await until(clock, () => sink.batches.length > 4);
  await turns();
  expect(sink.batches).toHaveLength(5);
  sink.answer = () => DELIVERED;
  await until(clock, () => cursor() === 40);
  expect(sink.taken).toHaveLength(40);
});

test('a sink in trouble is left alone for as long as it asks for, and the longest wait holds', async () => {
  let answers = 0;
  const sink = new ScriptedSink(
    () => {
      answers += 1;
      return { ...DOWN, delayMs: answers === 1 ? 60_000 : 10 };
    },
    { batchCount: 1, inFlight: 2, order: 'none' },
  );
  const { put, clock, dispatcher } = await feedOf(sink);
  put(2);
  await turns();
  expect(answers).toBe(2);
  sink.answer = () => DELIVERED;
  const began = clock.monotonic();
  while (sink.taken.length < 2) {
    expect(clock.next()).toBe(true);
    await turns();
  }
  expect(clock.monotonic() - began).toBeGreaterThanOrEqual(60_000);
  expect(dispatcher.status()).toMatchObject([{ mode: 'running', lastError: null }]);
});

test('the journal cannot be read: the sink pauses, says why, and then has everything', async () => {
  class Unreadable extends ArrayJournal {
    failures = 2;

    override read(...args: Parameters<ArrayJournal['read']>): ReturnType<ArrayJournal['read']> {
      this.failures -= 1;
      return this.failures >= 0 ? Promise.reject(new Error('bad page')) : super.read(...args);
    }
  }
  const sink = new ScriptedSink(() => DELIVERED);
  const { put, clock, cursor, dispatcher } = await feedOf(sink, { journal: new Unreadable() });
  put(3);
  await turns();
  expect(dispatcher.status()).toMatchObject([{ lastError: 'journal: bad page' }]);
  await until(clock, () => cursor() === 3);
  expect(sink.taken).toHaveLength(3);
});

test('passed resolves when all that the journal held is settled, not before', async () => {
  const sink = new ScriptedSink(() => DOWN);
  const { put, clock, dispatcher } = await feedOf(sink);
  put(4);
  await turns();
  let done = false;
  const passed = dispatcher.passed('a').then(() => (done = true));
  await turns();
  expect(done).toBe(false);
  sink.answer = ({ event }) => (event.id === 'e4' ? { status: 'retry', reason: 'later' } : DELIVERED);
  for (let n = 0; n < 5; n += 1) {
    clock.next();
    await turns();
  }
  expect(done).toBe(false);
  sink.answer = () => DELIVERED;
  await until(clock, () => done);
  await passed;
  await dispatcher.passed('a');
});

test('what a sink had confirmed and lost becomes dead letters: those it had, whole, and none of erased users', async () => {
  const { journal, put, clock, cursor, dispatcher } = await feedOf(new ScriptedSink(() => DELIVERED));
  put(2);
  journal.put({ ...makeEvent({ id: 'erased' }), handling: { erased: true } });
  journal.put({ ...makeEvent({ id: 'without targets' }), handling: { only: [] } });
  put(2);
  await until(clock, () => cursor() === 6);
  const gone = { seqs: [2, 3, 4, 6], destination: 'd', code: 'file_lost', reason: 'x' };
  expect(await dispatcher.takeBack('a', gone)).toBe(2);
  expect(journal.deadLetters.map(({ event, code, destination }) => [event.id, code, destination])).toEqual([
    ['e2', 'file_lost', 'd'],
    ['e6', 'file_lost', 'd'],
  ]);
  expect(dispatcher.status()).toMatchObject([{ dead: 2 }]);
  await expect(dispatcher.takeBack('nowhere', gone)).rejects.toThrow('nowhere is not open');
});

test('what is erased while it waits at a sink in trouble is not sent when the sink is back', async () => {
  const sink = new ScriptedSink(() => DOWN);
  const { journal, clock, cursor, dispatcher } = await feedOf(sink);
  for (const user of ['gone', 'stays', 'gone']) journal.put(makeEvent({ id: user, user }));
  await turns();
  dispatcher.forget({ upTo: 3, owned: ({ user }) => user === 'gone' });
  sink.answer = () => DELIVERED;
  await until(clock, () => cursor() === 3);
  expect(sink.taken.map(({ event }) => event.id)).toEqual(['stays']);
});

test('a sink that pays by the call waits for more, but not for a full batch, and not when it ends', async () => {
  const sink = new ScriptedSink(() => DELIVERED, { linger: 1000, batchCount: 10 });
  const { put, clock, dispatcher } = await feedOf(sink);
  put(1);
  await turns();
  // The first has nothing to wait for.
  expect(sink.batches).toEqual([1]);
  put(3);
  await turns();
  expect(sink.batches).toEqual([1]);
  put(7);
  await turns();
  expect(sink.batches).toEqual([1, 10]);
  put(2);
  await turns();
  expect(sink.batches).toEqual([1, 10]);
  clock.next();
  await turns();
  expect(sink.batches).toEqual([1, 10, 2]);
  put(1);
  await turns();
  await dispatcher.stop(AbortSignal.timeout(5000));
  expect(sink.batches).toEqual([1, 10, 2, 1]);
});

test('a sink that cannot be started leaves no listener at the journal, nor does one that is removed', async () => {
  const listeners = new Set<object>();
  class Counting extends ArrayJournal {
    override subscribe(listener: (seq: number) => void): () => void {
      const end = super.subscribe(listener);
      const one = {};
      listeners.add(one);
      return () => {
        listeners.delete(one);
        end();
      };
    }
  }
  const journal = new Counting();
  const { dispatcher } = await feedOf(new ScriptedSink(() => DELIVERED), { journal });
  const open = listeners.size;
  expect(open).toBeGreaterThan(0);
  const refusing = new ScriptedSink(() => DELIVERED);
  refusing.open = () => Promise.reject(new MillraceError('usage', 'made-up refusal'));
  await expect(dispatcher.add('b', refusing)).rejects.toThrow('made-up refusal');
  expect(listeners.size).toBe(open);
  await dispatcher.remove('a', AbortSignal.abort());
  expect(listeners.size).toBe(0);
});

test('an event that waits for its turn is no error and no retry', async () => {
  const sink = new ScriptedSink(() => ({
    status: 'retry',
    reason: 'others first',
    delayMs: 10,
    untried: true,
  }));
  const { put, clock, dispatcher } = await feedOf(sink);
  put(3);
  await until(clock, () => sink.batches.length > 3);
  expect(dispatcher.status()).toMatchObject([{ mode: 'running', lastError: null, retried: 0, waiting: 3 }]);
});

test('an error that comes and goes is shown all the time, and the sink is well in between', async () => {
  const sink = new ScriptedSink((_, call) => (call % 2 === 0 ? DELIVERED : DOWN), {
    batchCount: 1,
    inFlight: 1,
  });
  const { put, clock, dispatcher } = await feedOf(sink);
  const shown = (): unknown => dispatcher.status()[0]?.lastError;
  put(1);
  await until(clock, () => sink.taken.length === 1);
  expect([shown(), dispatcher.isWell('a')]).toEqual([null, true]);
  put(1);
  await until(clock, () => sink.taken.length === 2);
  expect([shown(), dispatcher.isWell('a')]).toEqual(['down', true]);
  const end = clock.monotonic() + 10_000;
  clock.after(10_000, () => undefined);
  await until(clock, () => clock.monotonic() >= end);
  expect(shown()).toBeNull();
});
