import type { ErasureRun, Subject, TakenOut } from '../core/erasure.ts';
import type { Remote } from '../lib/remote.ts';
import type { EraseStep } from './erase.ts';
import { allKnownBy } from './identity.ts';
import type { Store } from './store.ts';

type Erased = Pick<Remote<Store>, 'eraser'>;

/** Ids forgotten in one transaction: a few milliseconds. */
const FORGET = 200;

/**
 * Takes the subjects out of the database, a slice at a time, so that events continue coming in between.
 * @param alone whether nothing comes in: then nobody waits, and a slice may take its time
 */
export async function eraseFrom(
  store: Erased,
  { subjects, signal, record, onStep }: ErasureRun,
  name: string,
  alone: boolean,
): Promise<void> {
  await perform(store, subjects, { do: 'setAside' }, alone, signal, onStep);
  const { eraser } = store;
  for (const { request } of subjects) {
    const counts = await eraser.counts(request);
    const entries = await eraser.entries(request);
    const items = Object.entries(counts).filter(([, count]) => count > 0);
    for (const [index, [item, count]] of items.entries()) {
      await record({
        store: name,
        item,
        removed: { [request]: count },
        sha256_before: null,
        sha256_after: null,
        // Of all the items: an event and its dead letter have one entry.
        ...(index === 0 && entries.length > 0 ? { entries: { [request]: entries } } : {}),
      });
    }
  }
}

/** A step and those that follow from it. */
export async function perform(
  { eraser }: Erased,
  subjects: readonly Subject[],
  first: EraseStep,
  alone: boolean,
  signal?: AbortSignal,
  onStep?: ErasureRun['onStep'],
): Promise<void> {
  let next: EraseStep | null = first;
  while (next !== null) {
    signal?.throwIfAborted();
    const step: EraseStep = next.do === 'scrub' ? { do: 'scrub', alone } : next;
    next = await eraser.perform(subjects, step);
    if (next?.do !== step.do) onStep?.(`journal ${step.do}`);
  }
}

export async function forgetIn({ eraser }: Erased, events: readonly TakenOut[]): Promise<void> {
  for (let at = 0; at < events.length; at += FORGET) {
    const some = events.slice(at, at + FORGET);
    const known = some.flatMap(allKnownBy);
    await eraser.perform([], { do: 'known', known });
  }
}
