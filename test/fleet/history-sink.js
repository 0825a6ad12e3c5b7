import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Writes down what it is given, in one file for all processes: what a party behind the sink would see, in its order. */
export const parseOptions = (options) => options;

export function createSink(
  { path, ms = 1, batch: batchCount = 50, refuse = null, holds = null, stalls = null, only = null },
  { name },
) {
  return {
    limits: {
      batchCount,
      batchBytes: 2 ** 20,
      eventBytes: Infinity,
      inFlight: 4,
      order: 'user',
      batchBy: 'mixed',
      linger: 0,
    },
    open: () => Promise.resolve(),
    async send(batch) {
      await wait(ms);
      if (stalls !== null && name === only && (await exists(stalls))) {
        appendFileSync(`${String(stalls)}.begun`, '');
        while (await exists(stalls)) await wait(50);
      }
      if (holds !== null && name === only && (await exists(holds)))
        return batch.map(() => ({ status: 'retry', reason: 'held back' }));
      const lines = batch.map(
        ({ event }) => `${JSON.stringify([event.id, event.user, process.pid, Date.now()])}\n`,
      );
      appendFileSync(path, lines.join(''));
      return batch.map(({ event }) =>
        event.type === refuse
          ? { status: 'refused', code: 'rejected', reason: 'not wanted here' }
          : { status: 'delivered' },
      );
    },
    close: () => Promise.resolve(),
  };
}

async function exists(path) {
  const { access } = await import('node:fs/promises');
  return access(path).then(
    () => true,
    () => false,
  );
}
