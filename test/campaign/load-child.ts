import { LoadSender } from '../support/load-sender.ts';
import { until } from '../support/until.ts';
import { digestOf, type SentEvent } from './oracle.ts';

// The load generator, a process of its own: what it was answered, it alone knows.

export type LoadOrder =
  /** Forgets all of the history before. `early` counts an event as acknowledged before the receiver has it. */
  | { readonly op: 'forget'; readonly early: boolean }
  | { readonly op: 'begin'; readonly url: string }
  /** What is sent from now on belongs to this stretch of the run. */
  | { readonly op: 'stretch'; readonly stretch: number }
  /** Waits for so many more answers of 2xx or of 5xx; tells whether they came before the receiver was gone. */
  | { readonly op: 'await'; readonly answers: number; readonly refusals: number }
  /** Waits until no connection is left that is answered. */
  | { readonly op: 'over' }
  | { readonly op: 'end' }
  /** What was answered since then, in nanoseconds of the system's monotonic clock, does not count. */
  | { readonly op: 'unhear'; readonly since: string }
  | { readonly op: 'report' };

let sender = new LoadSender();
let stop = new AbortController();
let load: Promise<void> = Promise.resolve();
let over = true;

process.on('message', (order: LoadOrder) => {
  obey(order).then(
    (result) => process.send?.({ ok: true, result }),
    (error: unknown) => process.send?.({ ok: false, error: String(error) }),
  );
});
// The parent is gone: nobody wants the answer.
process.on('disconnect', () => process.exit());
// A terminal's Ctrl-C is for the parent, who ends this when it is done.
process.on('SIGINT', () => undefined);

async function obey(order: LoadOrder): Promise<unknown> {
  switch (order.op) {
    case 'forget':
      sender = new LoadSender(order.early);
      return null;
    case 'begin':
      stop = new AbortController();
      over = false;
      load = sender.load(order.url, stop.signal).finally(() => (over = true));
      // Whoever waits for it hears of a failure.
      load.catch(() => undefined);
      return null;
    case 'stretch':
      sender.stretch = order.stretch;
      return null;
    case 'await': {
      const { answers, refused } = sender;
      const come = (): boolean =>
        sender.answers >= answers + order.answers && sender.refused >= refused + order.refusals;
      await until('answers', () => come() || over);
      if (over) await load;
      return come();
    }
    case 'over':
      await load;
      return null;
    case 'end':
      stop.abort();
      await load;
      return null;
    case 'unhear':
      sender.unhear(BigInt(order.since));
      return null;
    case 'report':
      break;
  }
  return report();
}

function report(): SentEvent[] {
  return [...sender.sent].map(([id, body]) => ({
    id,
    type: (JSON.parse(body.toString()) as { event_type: string }).event_type,
    digest: digestOf(body),
    acknowledged: sender.acknowledged.has(id),
    first: sender.firstSent.get(id) ?? 0,
    // Its sinks are decided when it is accepted, and no later routes change them.
    last: sender.answered.get(id)?.stretch ?? sender.stretch,
  }));
}
