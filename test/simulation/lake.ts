import type { Delivery, SendResult, Sink, SinkModule } from '../../src/core/sink.ts';
import { here } from './world.ts';

const DELIVERED: SendResult = { status: 'delivered' };

/**
 * A sink that answers `held` and says later that the events are in their place, `world.lake`, or that they are lost and have
 * to come again. A kill takes what it holds.
 */
export const LAKE: SinkModule = {
  parseOptions: () => ({}),
  createSink: (): Sink => new Lake(),
};

class Lake implements Sink {
  readonly limits = {
    batchCount: 8,
    batchBytes: 1e6,
    eventBytes: 1e6,
    inFlight: 2,
    order: 'none',
    batchBy: 'mixed',
  } as const;
  /** What is held goes to its place together. */
  #held: Held | null = null;

  async open(): Promise<void> {
    return Promise.resolve();
  }

  send(batch: readonly Delivery[]): Promise<SendResult[]> {
    const { lake, scheduler } = here();
    return scheduler.ask(() =>
      batch.map(({ event }) => {
        const { id } = event;
        // What an earlier life has put there is known again.
        if (lake.taken.some((there) => there.id === id)) return DELIVERED;
        this.#held ??= this.#hold();
        this.#held.events.push({ id, body: event.body.toString() });
        return { status: 'held', until: this.#held.placed.promise };
      }),
    );
  }

  /** Puts what it holds in its place at once. */
  async settle(): Promise<void> {
    return here().scheduler.ask(() => this.#place(this.#held));
  }

  async close(): Promise<void> {
    return this.settle();
  }

  #hold(): Held {
    const held: Held = { events: [], placed: Promise.withResolvers(), isOver: false };
    held.placed.promise.catch(() => undefined);
    const { scheduler } = here();
    scheduler.after(scheduler.random.below(90_000), () => this.#place(held));
    return held;
  }

  #place(held: Held | null): void {
    if (held === null || held.isOver) return;
    const world = here();
    const { lake, scheduler } = world;
    held.isOver = true;
    if (this.#held === held) this.#held = null;
    world.note('held');
    if (scheduler.random.chance(0.1)) {
      world.note('held and lost');
      held.placed.reject(new Error('made-up loss'));
      return;
    }
    lake.taken.push(...held.events);
    // It is there; that this is heard is another matter.
    scheduler.later(() => held.placed.resolve());
  }
}

interface Held {
  readonly events: { readonly id: string; readonly body: string }[];
  readonly placed: PromiseWithResolvers<void>;
  isOver: boolean;
}
