import { existsSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import { LIMITS } from '../support/sink-limits.ts';

// A sink of a user's own that writes all it is given to `dump` in its folder: each event's body, and a line with the rest of
// the delivery. While `refuse` is there it takes nothing, and while `closed` is there it cannot be reached.

export function parseOptions(options: unknown): { folder: string } {
  return { folder: String((Object(options) as { folder?: unknown }).folder) };
}

export function createSink({ folder }: { folder: string }): Sink {
  return {
    limits: LIMITS,
    open: () => Promise.resolve(),
    async send(batch) {
      if (existsSync(join(folder, 'closed'))) throw new Error('closed');
      if (existsSync(join(folder, 'refuse')))
        return batch.map(() => ({ status: 'refused', code: 'made_up', reason: 'made up' }) as const);
      const pieces = batch.flatMap(({ event: { body, ...rest }, ...around }) => [
        body,
        Buffer.from(`\n${JSON.stringify({ ...around, rest })}\n`),
      ]);
      await appendFile(join(folder, 'dump'), Buffer.concat(pieces));
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}
