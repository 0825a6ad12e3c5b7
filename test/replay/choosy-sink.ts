import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';

// A sink of a user's own that refuses events of one type. In its folder, `delivered` holds what it has taken: a
// line of JSON each.

interface Options {
  readonly folder: string;
  readonly refuses: string;
}

export function parseOptions(options: unknown): Options {
  const { folder, refuses } = Object(options) as Options;
  return { folder, refuses };
}

export function createSink({ folder, refuses }: Options): Sink {
  return {
    limits: {
      batchCount: 50,
      batchBytes: 1e6,
      eventBytes: 1e6,
      inFlight: 2,
      order: 'user',
      batchBy: 'mixed',
    },
    open: () => Promise.resolve(),
    async send(batch) {
      const lines = batch.map(({ event: { id, type, user, body, handling }, destination }) =>
        type === refuses
          ? ''
          : `${JSON.stringify({ id, type, user, destination, handling, body: body.toString() })}\n`,
      );
      await appendFile(join(folder, 'delivered'), lines.join(''));
      return batch.map(({ event: { type } }) =>
        type === refuses ? { status: 'refused', code: 'choosy', reason: 'not for me' } : DELIVERED,
      );
    },
    close: () => Promise.resolve(),
  };
}
