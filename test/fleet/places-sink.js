import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

// A sink with places. Each writes down in `<place>.given` the ids it is given. While `<place>.down` is there it takes nothing, and
// while `<place>.refuses` is there it refuses what it is given. Of a process whose id is in `<place>.stalls` it takes its time.

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
  async send(batch) {
    const stalls = join(folder, `${batch[0].destination}.stalls`);
    const isStalled = () => existsSync(stalls) && readFileSync(stalls, 'utf8') === String(process.pid);
    if (isStalled()) appendFileSync(`${stalls}.begun`, '');
    while (isStalled()) await wait(20);
    return batch.map(({ event: { id }, destination }) => {
      const at = join(folder, String(destination));
      if (existsSync(`${at}.down`)) return { status: 'retry', reason: 'it is down' };
      appendFileSync(`${at}.given`, `${id}\n`);
      if (!existsSync(`${at}.refuses`)) return { status: 'delivered' };
      return { status: 'refused', code: 'rejected', reason: 'not wanted here' };
    });
  },
  close: () => Promise.resolve(),
});
