import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import { toFailure } from '../../sinks/kafka/failure.ts';

/** Milliseconds: brokers choose another leader within that, and between two tries. */
const [PATIENCE, PAUSE] = [30_000, 200];

/**
 * Tries until it works: a process can start while a broker that leads is gone, and another one is chosen. Waiting does not help
 * where a topic is missing, or access is denied.
 * @throws MillraceError journal_unreadable naming the topic
 */
export async function patiently<T>(topic: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (const end = performance.now() + PATIENCE; ;)
    try {
      return await work();
    } catch (error) {
      const { kind, reason } = toFailure(error);
      if (kind === 'missing' || kind === 'denied' || performance.now() > end || signal?.aborted === true)
        throw new MillraceError('journal_unreadable', `topic ${topic}: ${reason}`, { cause: error });
      await wait(PAUSE, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
}
