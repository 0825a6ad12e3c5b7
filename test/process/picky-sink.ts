import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import { LIMITS } from '../support/sink-limits.ts';

// A sink of a user's own with settings to correct: it opens once `ready` is set, and takes only what is routed to `right`.
// `delivered` in its folder holds the ids it has taken, a line each.

interface Options {
  readonly folder: string;
  readonly ready: boolean;
}

export function parseOptions(options: unknown): Options {
  const { folder, ready } = Object(options) as Options;
  return { folder, ready };
}

export function createSink({ folder, ready }: Options): Sink {
  return {
    limits: { ...LIMITS, batchBy: 'destination' },
    open: () => (ready ? Promise.resolve() : Promise.reject(new Error('wrong connection string'))),
    async send(batch) {
      if (batch[0]?.destination !== 'right')
        return batch.map(() => ({ status: 'retry', reason: 'no such place', sink: true }));
      await appendFile(join(folder, 'delivered'), batch.map(({ event }) => `${event.id}\n`).join(''));
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}
