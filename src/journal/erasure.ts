import type { ErasureRun } from '../core/erasure.ts';
import type { EraseStep } from './erase.ts';
import type { Writer } from './writer-thread.ts';

/**
 * Takes the subjects out of the database, a slice at a time, so that events go on coming in between.
 * @param alone whether nothing comes in: then nobody waits, and a slice may take its time
 */
export async function eraseFrom(
  thread: Writer,
  { subjects, signal, record, onStep }: ErasureRun,
  store: string,
  alone: boolean,
): Promise<void> {
  let next: EraseStep | null = { do: 'letters' };
  while (next !== null) {
    signal.throwIfAborted();
    const step: EraseStep = next.do === 'scrub' ? { do: 'scrub', alone } : next;
    next = await thread.call('erase', { op: 'erase', subjects, step });
    if (next?.do !== step.do) onStep(`journal ${step.do}`);
  }
  for (const { request } of subjects) {
    const counts = await thread.call('erasedCounts', { op: 'erasedCounts', request });
    for (const [item, count] of Object.entries(counts)) {
      if (count === 0) continue;
      await record({ store, item, removed: { [request]: count }, sha256_before: null, sha256_after: null });
    }
  }
}
