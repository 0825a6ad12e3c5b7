import { existsSync } from 'node:fs';
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { DELIVERED, type Sink, type SinkLimits } from '../../src/core/sink.ts';
import { LIMITS } from '../support/sink-limits.ts';

// A sink of a user's own that is in trouble until a test lets it out. In its folder: `opening` appears when it begins to
// open, `begun` with the first batch, `gate` is what it waits for, `delivered` holds the ids it has taken, a line each.

interface Options {
  readonly folder: string;
  readonly opens: 'at once' | 'at the gate' | 'never' | 'with an error';
  /** What becomes of a batch while there is no gate. It is held whatever the signal says, but for `fails, then waits`. */
  readonly shut: 'waits' | 'is sent again' | 'fails' | 'fails, then waits' | 'is taken';
  /** What it has taken waits for the gate to be answered; when the signal aborts, the answer is lost. */
  readonly answersLate: boolean;
  readonly refuses: boolean;
  /** Milliseconds that a batch takes. */
  readonly takes: number;
  readonly limits: Partial<SinkLimits>;
}

const DEFAULTS = {
  opens: 'at once',
  shut: 'waits',
  answersLate: false,
  refuses: false,
  takes: 0,
  limits: {},
} as const;

export function parseOptions(options: unknown): Options {
  return { ...DEFAULTS, ...(options as Pick<Options, 'folder'>) };
}

export function createSink(options: Options): Sink {
  const { folder, opens, shut, answersLate, refuses, takes, limits } = options;
  const isShut = (): boolean => !existsSync(join(folder, 'gate'));
  const keepsClosed = (): boolean => opens === 'never' || isShut();
  const holds = (): boolean => shut !== 'is taken' && isShut();
  let hasFailed = false;
  return {
    limits: { ...LIMITS, order: 'none', ...limits },
    async open() {
      if (opens === 'with an error') throw new Error('it is down');
      if (opens === 'at once') return;
      await writeFile(join(folder, 'opening'), '');
      while (keepsClosed()) await wait(10);
    },
    async send(batch, signal) {
      if (refuses) return batch.map(() => ({ status: 'refused', code: 'made_up', reason: 'made up' }));
      if (shut === 'is sent again' && isShut())
        return batch.map(() => ({ status: 'retry', reason: 'the gate is shut', sink: true, delayMs: 20 }));
      if (shut.startsWith('fails') && isShut() && !(hasFailed && shut === 'fails, then waits')) {
        hasFailed = true;
        throw new Error('it is down');
      }
      const deliver = (): Promise<void> =>
        appendFile(join(folder, 'delivered'), batch.map(({ event }) => `${event.id}\n`).join(''));
      if (answersLate) await deliver();
      await writeFile(join(folder, 'begun'), '');
      const heeds = answersLate || shut === 'fails, then waits';
      while (holds()) await wait(10, undefined, heeds ? { signal } : {});
      await wait(takes);
      if (!answersLate) await deliver();
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}
