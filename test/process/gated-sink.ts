import { existsSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';

// A sink of a user's own that holds each batch until a test lets it through, and heeds no signal. In its folder:
// `begun` appears with the first batch, `gate` is what it waits for, `delivered` holds the ids it has taken, a line each.

export function parseOptions(options: unknown): { folder: string } {
  return { folder: String(Object(options).folder) };
}

export function createSink({ folder }: { folder: string }): Sink {
  return {
    limits: {
      batchCount: 10,
      batchBytes: 1e6,
      eventBytes: 1e6,
      inFlight: 1,
      order: 'none',
      batchBy: 'mixed',
    },
    open: () => Promise.resolve(),
    async send(batch) {
      await writeFile(join(folder, 'begun'), '');
      while (!existsSync(join(folder, 'gate'))) await wait(10);
      await appendFile(join(folder, 'delivered'), batch.map(({ event }) => `${event.id}\n`).join(''));
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}
