import { existsSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import { LIMITS } from '../support/sink-limits.ts';

// A sink of a user's own that holds each batch until a test lets it through, and heeds no signal but as `answersLate`. In its folder:
// `begun` appears with the first batch, `gate` is what it waits for, `delivered` holds the ids it has taken, a line each.

interface Options {
  readonly folder: string;
  /** Opening waits for the gate as well; `opening` appears when it begins. */
  readonly holdOpen: boolean;
  /** What it has taken waits for the gate to be answered; when the signal aborts, the answer is lost. */
  readonly answersLate: boolean;
}

export function parseOptions(options: unknown): Options {
  const { folder, holdOpen, answersLate } = Object(options) as Partial<Options>;
  return { folder: String(folder), holdOpen: holdOpen === true, answersLate: answersLate === true };
}

export function createSink({ folder, holdOpen, answersLate }: Options): Sink {
  return {
    limits: { ...LIMITS, order: 'none' },
    async open() {
      if (!holdOpen) return;
      await writeFile(join(folder, 'opening'), '');
      while (!existsSync(join(folder, 'gate'))) await wait(10);
    },
    async send(batch, signal) {
      const deliver = (): Promise<void> =>
        appendFile(join(folder, 'delivered'), batch.map(({ event }) => `${event.id}\n`).join(''));
      if (answersLate) await deliver();
      await writeFile(join(folder, 'begun'), '');
      while (!existsSync(join(folder, 'gate'))) await wait(10, undefined, answersLate ? { signal } : {});
      if (!answersLate) await deliver();
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}
