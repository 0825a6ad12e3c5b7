import type { SendResult } from '../../core/sink.ts';
import { NotFollowed } from '../../lib/durable.ts';
import { explain } from './troubles.ts';

export const ABORTED: SendResult = { status: 'retry', reason: 'stopped before it was written' };

/** What an append that failed means for its events: nothing is wrong with them. */
export function retryAfter(error: unknown): SendResult {
  // One folder of the archive is not what it should be; the others are fine.
  if (error instanceof NotFollowed) return { status: 'retry', reason: error.message };
  return { status: 'retry', reason: explain(error), sink: true };
}

/** The result, or ABORTED as soon as the signal says so; the work then goes on unheeded. */
export function unlessAborted(work: Promise<SendResult>, signal: AbortSignal): Promise<SendResult> {
  if (signal.aborted) return work;
  const aborted = Promise.withResolvers<SendResult>();
  const stop = (): void => aborted.resolve(ABORTED);
  signal.addEventListener('abort', stop, { once: true });
  return Promise.race([work, aborted.promise]).finally(() => signal.removeEventListener('abort', stop));
}
