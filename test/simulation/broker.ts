import type { Delivery, SendResult, Sink, SinkModule } from '../../src/core/sink.ts';
import { here } from './world.ts';

const DELIVERED: SendResult = { status: 'delivered' };
const AGAIN: SendResult = { status: 'retry', reason: 'made-up trouble', sink: true, delayMs: 500 };
const BUSY: SendResult = { status: 'retry', reason: 'made-up delay', delayMs: 2000 };
const REFUSED: SendResult = { status: 'refused', code: 'made_up', reason: 'made-up refusal' };

/** Ways in which a broker answers while it is in trouble. */
const MOODS = [
  'well',
  'down',
  'busy',
  'lost answer',
  'late',
  'hangs',
  'refuses one',
  'refuses the batch',
  'in part',
] as const;

/**
 * A distant sink, which keeps what it has accepted over restarts of the receiver: `world.broker`. A call that the receiver has
 * given up still has its effects, later.
 */
export const BROKER: SinkModule = {
  parseOptions: () => ({}),
  createSink: (): Sink => ({
    limits: { batchCount: 5, batchBytes: 1e6, eventBytes: 1e6, inFlight: 3, order: 'user', batchBy: 'mixed' },
    open: async () => {
      if (here().scheduler.random.chance(here().broker.trouble)) throw new Error('made-up trouble');
      return Promise.resolve();
    },
    send,
    close: async () => Promise.resolve(),
  }),
};

function send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
  const { broker, scheduler } = here();
  const { random } = scheduler;
  const mood = random.chance(broker.trouble) ? random.pick(MOODS) : 'well';
  if (mood !== 'well') here().note(`broker: ${mood}`);
  const events = batch.map(({ event }) => ({ id: event.id, body: event.body.toString() }));
  const all = (result: SendResult): SendResult[] => batch.map(() => result);
  const take = (count = events.length): void => void broker.taken.push(...events.slice(0, count));
  return new Promise((resolve, reject) => {
    // At the broker, where a kill of the receiver changes nothing; the answer finds it only alive.
    const after = (ms: number, work: () => void): void =>
      scheduler.within(null, () => void scheduler.after(ms, work));
    const { life } = scheduler;
    const answer = (results: SendResult[]): void =>
      scheduler.within(life, () => scheduler.later(() => resolve(results)));
    const fail = (): void =>
      scheduler.within(life, () => scheduler.later(() => reject(new Error('made-up trouble'))));
    const soon = random.below(50);
    if (mood === 'down') after(soon, fail);
    else if (mood === 'busy') after(soon, () => answer(all(random.chance(0.5) ? AGAIN : BUSY)));
    else if (mood === 'lost answer') after(soon, () => (take(), fail()));
    else if (mood === 'late') after(random.below(25_000), () => (take(), answer(all(DELIVERED))));
    else if (mood === 'hangs') {
      // It gives up when its signal aborts, and what it had sent arrives.
      const giveUp = (): void => after(random.below(5000), () => (take(), fail()));
      signal.addEventListener('abort', giveUp, { once: true });
    } else if (mood === 'refuses the batch') after(soon, () => answer(all(refusalOf(events, true))));
    else if (mood === 'refuses one' || mood === 'in part')
      after(soon, () => {
        const count = random.below(events.length);
        take(count);
        const last = mood === 'in part' ? BUSY : refusalOf(events.slice(count, count + 1), false);
        answer(batch.map((_, index) => (index < count ? DELIVERED : index === count ? last : BUSY)));
      });
    else after(soon, () => (take(), answer(all(DELIVERED))));
  });
}

/** @param batch whether it is not said which event is to blame: of one alone, it is that one */
function refusalOf(events: readonly { readonly id: string }[], batch: boolean): SendResult {
  if (!batch || events.length === 1) for (const { id } of events) here().broker.refused.add(id);
  return batch ? ({ ...REFUSED, batch: true } as SendResult) : REFUSED;
}
