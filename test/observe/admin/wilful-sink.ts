import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DELIVERED, type Sink } from '../../../src/core/sink.ts';
import { LIMITS } from '../../support/sink-limits.ts';

// A sink of a user's own: it opens once the file `open` is in its folder, refuses events
// whose type starts with `labtest.` while there is no file `mild`, and writes down in `sent` whatever it is given.

export function parseOptions(options: unknown): { folder: string } {
  return { folder: String(Object(options).folder) };
}

export function createSink({ folder }: { folder: string }): Sink {
  const has = (name: string): boolean => existsSync(join(folder, name));
  return {
    limits: { ...LIMITS, order: 'none' },
    open: () => (has('open') ? Promise.resolve() : Promise.reject(new Error('made-up trouble'))),
    async send(batch) {
      const lines = batch.map(({ event }) => `${JSON.stringify([event.id, event.handling.trace ?? null])}\n`);
      await appendFile(join(folder, 'sent'), lines.join(''));
      return batch.map(({ event }) =>
        event.type.startsWith('labtest.') && !has('mild')
          ? { status: 'refused', code: 'made_up_code', reason: 'made-up reason' }
          : DELIVERED,
      );
    },
    close: () => Promise.resolve(),
  };
}
