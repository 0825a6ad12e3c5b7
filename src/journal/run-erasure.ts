import type { ErasureRun, Subject, RemovedEvent } from '../core/erasure.ts';
import type { Remote } from '../lib/remote.ts';
import type { EraseStep } from './erase.ts';
import { possibleHashes } from './identity.ts';
import type { Store } from './store.ts';

type RemoteEraser = Remote<Store>['eraser'];

/** Ids forgotten in one transaction: a few milliseconds. */
const FORGET_AT_ONCE = 200;

/**
 * Erases the subjects step by step, so that events can come in between, and records the counts.
 * @param name of the store in the receipts
 * @param alone true when no deliveries wait for the journal: a step may take long then
 */
export async function eraseSubjects(
  eraser: RemoteEraser,
  run: ErasureRun,
  name: string,
  alone: boolean,
): Promise<void> {
  const { subjects, record } = run;
  await performSteps(eraser, subjects, { do: 'setAside' }, alone, run);
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
        // With the first item only: an event and its dead letter have one entry.
        ...(index === 0 && entries.length > 0 ? { entries: { [request]: entries } } : {}),
      });
    }
  }
}

/** Performs a step and those that follow from it. */
export async function performSteps(
  eraser: RemoteEraser,
  subjects: readonly Subject[],
  first: EraseStep | null,
  alone: boolean,
  { signal, onStep }: Pick<ErasureRun, 'signal'> & Partial<Pick<ErasureRun, 'onStep'>>,
): Promise<void> {
  for (let next = first; next !== null;) {
    signal.throwIfAborted();
    const step: EraseStep = next.do === 'scrub' ? { do: 'scrub', alone } : next;
    next = await eraser.perform(subjects, step);
    if (next?.do !== step.do) onStep?.(`journal ${step.do}`);
  }
}

/** Forgets the ids of events that other stores erase. */
export async function forgetEvents(eraser: RemoteEraser, events: readonly RemovedEvent[]): Promise<void> {
  for (let at = 0; at < events.length; at += FORGET_AT_ONCE)
    await eraser.forgetIds(events.slice(at, at + FORGET_AT_ONCE).flatMap(possibleHashes));
}
