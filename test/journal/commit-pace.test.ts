import { expect, test } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { GroupCommit, type PendingEvent } from '../../src/journal/group-commit.ts';
import { makeEvent } from '../support/events.ts';

/** Milliseconds that the receiving thread has for a request, and for an answer; and that a commit takes for each event. */
const [RECEIVE, ANSWER, WRITE] = [0.025, 0.015, 0.01];

/** Of the thread. */
const TURNS = 1000;

interface Running {
  readonly end: number;
  readonly finish: () => void;
}

interface Setting {
  /** Each sends its next event when the last is answered. */
  readonly senders: number;
  /** Milliseconds of a commit, whatever is in it. */
  readonly sync: number;
  /** Each so manyth sync takes twenty times as long. */
  readonly hiccup?: number;
  /** Before each so manyth event its sender has something else to do, for as long as a sync takes. */
  readonly late?: number;
}

/** Events a millisecond of one thread that receives and answers, beside one that commits; no time but this one's passes. */
async function rate({ senders, sync, hiccup = 0, late = Infinity }: Setting): Promise<number> {
  let [now, answered, commits] = [0, 0, 0];
  let requests = senders;
  let running: Running | null = null;
  let timers: { readonly due: number; readonly call: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after: (ms, call) => {
      timers.push({ due: now + ms, call });
      return () => undefined;
    },
  };
  const commit = (batch: readonly PendingEvent[]): Promise<() => void> => {
    commits += 1;
    const slow = hiccup > 0 && commits % hiccup === 0 ? 20 : 1;
    const { promise, resolve } = Promise.withResolvers<() => void>();
    const finish = (): void =>
      resolve(() => {
        for (const one of batch) one.resolve({ status: 'accepted', seq: 1 });
      });
    running = { end: now + sync * slow + WRITE * batch.length, finish };
    return promise;
  };
  // By a call, or the compiler takes it to be what it was at first.
  const current = (): Running | null => running;
  const group = new GroupCommit(commit, clock);
  const event = makeEvent({ body: Buffer.from('{}') });
  for (let turn = 0; turn < TURNS; turn += 1) {
    // One turn: what is due, then all that has come, then what was put off to its end.
    const due = timers.filter((timer) => timer.due <= now);
    timers = timers.filter((timer) => timer.due > now);
    for (const { call } of due) call();
    const ended = current();
    if (ended !== null && ended.end <= now) {
      running = null;
      ended.finish();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const came = requests;
    requests = 0;
    for (let n = 0; n < came; n += 1) {
      now += RECEIVE;
      void group.add({ event, handling: undefined, invalid: null, dedupKey: undefined }).then(() => {
        now += ANSWER;
        answered += 1;
        if (answered % late === 0) clock.after(sync, () => (requests += 1));
        else requests += 1;
      });
    }
    await new Promise((resolve) => setImmediate(resolve));
    if (requests > 0) continue;
    const end = current()?.end ?? Number.POSITIVE_INFINITY;
    now = Math.max(now, Math.min(end, ...timers.map((timer) => timer.due)));
  }
  return answered / now;
}

/** All in one commit, then all here. */
function whole({ senders, sync }: Setting): number {
  return senders / (sync + senders * (WRITE + RECEIVE + ANSWER));
}

/** Half of them in a commit, while the other half is here. */
function halves({ senders, sync }: Setting): number {
  return senders / (2 * Math.max(sync + (senders / 2) * WRITE, (senders / 2) * (RECEIVE + ANSWER)));
}

test.for([
  { senders: 256, sync: 0.4 },
  { senders: 256, sync: 3 },
  { senders: 64, sync: 0.4 },
  { senders: 64, sync: 1 },
  { senders: 16, sync: 0.2 },
])('a disk that syncs fast is busy while half of $senders events are received: $sync ms', async (setting) => {
  expect((await rate(setting)) / halves(setting)).toBeGreaterThan(0.9);
  expect(halves(setting) / whole(setting)).toBeGreaterThan(1.15);
});

test.for([
  { senders: 256, sync: 30 },
  { senders: 64, sync: 10 },
  { senders: 16, sync: 10 },
])('where syncs are slow, all of $senders share one: $sync ms', async (setting) => {
  expect((await rate(setting)) / whole(setting)).toBeGreaterThan(0.9);
  expect(whole(setting) / halves(setting)).toBeGreaterThan(1.15);
});

test('a disk that is slow now and then does not change that', async () => {
  const steady = { senders: 64, sync: 0.4 };
  const without = await rate(steady);
  // A commit in a hundred takes 8 ms more, and a hundred halves 64 ms.
  expect((await rate({ ...steady, hiccup: 100 })) / without).toBeGreaterThan(0.8);
});

test('the few senders who are late do not divide what the others share', async () => {
  const setting = { senders: 64, sync: 10, late: 150 };
  // One in two rounds has such an event; were it taken for how long all of them need, each round would be two commits.
  expect((await rate(setting)) / halves(setting)).toBeGreaterThan(1.15);
});
