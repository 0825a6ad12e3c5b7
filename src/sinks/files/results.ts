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
