import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';

// A sink with places. Each writes down in `<place>.given` the ids it is given. While `<place>.down` is there it takes nothing, and
// while `<place>.refuses` is there it refuses what it is given.

export const parseOptions = (options) => options;

export const createSink = ({ folder }) => ({
  limits: {
    batchCount: 50,
    batchBytes: 2 ** 20,
    eventBytes: Infinity,
    inFlight: 4,
    order: 'user',
    batchBy: 'destination',
    linger: 0,
  },
  open: () => Promise.resolve(),
  send: (batch) =>
    Promise.resolve(
      batch.map(({ event: { id }, destination }) => {
        const at = join(folder, String(destination));
        if (existsSync(`${at}.down`)) return { status: 'retry', reason: 'it is down' };
        appendFileSync(`${at}.given`, `${id}\n`);
        if (!existsSync(`${at}.refuses`)) return { status: 'delivered' };
        return { status: 'refused', code: 'rejected', reason: 'not wanted here' };
      }),
    ),
  close: () => Promise.resolve(),
});
