import { existsSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';

// A sink of a user's own that holds each batch until a test lets it through, and heeds no signal. In its folder:
// `begun` appears with the first batch, `gate` is what it waits for, `delivered` holds the ids it has taken, a line each.

interface Options {
  readonly folder: string;
  /** Opening waits for the gate as well; `opening` appears when it begins. */
  readonly holdOpen: boolean;
}

export function parseOptions(options: unknown): Options {
  const { folder, holdOpen } = Object(options) as Partial<Options>;
  return { folder: String(folder), holdOpen: holdOpen === true };
}

export function createSink({ folder, holdOpen }: Options): Sink {
  return {
    limits: {
      batchCount: 10,
      batchBytes: 1e6,
      eventBytes: 1e6,
      inFlight: 1,
      order: 'none',
      batchBy: 'mixed',
    },
    async open() {
      if (!holdOpen) return;
      await writeFile(join(folder, 'opening'), '');
      while (!existsSync(join(folder, 'gate'))) await wait(10);
    },
    async send(batch) {
      await writeFile(join(folder, 'begun'), '');
      while (!existsSync(join(folder, 'gate'))) await wait(10);
      await appendFile(join(folder, 'delivered'), batch.map(({ event }) => `${event.id}\n`).join(''));
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}
