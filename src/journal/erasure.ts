import type { ErasureRun } from '../core/erasure.ts';
import type { Remote } from '../lib/remote.ts';
import type { EraseStep } from './erase.ts';
import type { Store } from './store.ts';

/**
 * Takes the subjects out of the database, a slice at a time, so that events continue coming in between.
 * @param alone whether nothing comes in: then nobody waits, and a slice may take its time
 */
export async function eraseFrom(
  { eraser }: Pick<Remote<Store>, 'eraser'>,
  { subjects, signal, record, onStep }: ErasureRun,
  name: string,
  alone: boolean,
): Promise<void> {
  let next: EraseStep | null = { do: 'setAside' };
  while (next !== null) {
    signal.throwIfAborted();
    const step: EraseStep = next.do === 'scrub' ? { do: 'scrub', alone } : next;
    next = await eraser.perform(subjects, step);
    if (next?.do !== step.do) onStep(`journal ${step.do}`);
  }
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
