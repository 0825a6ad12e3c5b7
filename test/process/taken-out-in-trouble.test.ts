import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';
import { until } from '../support/until.ts';

/** Says once that it is down, and answers no more until it is up. */
const DOWN = `
import { existsSync } from 'node:fs';
let said = false;
export const parseOptions = (options) => options;
export const createSink = ({ up, most = 1e6 }) => ({
  limits: { batchCount: 10, batchBytes: 1e6, eventBytes: most, inFlight: 1, order: 'user', batchBy: 'mixed' },
  open: async () => {},
  send: async (batch, signal) => {
    while (!existsSync(up)) {
      if (!said) { said = true; throw new Error('it is down'); }
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return batch.map(() => ({ status: 'delivered' }));
  },
  close: async () => {},
});`;

test.each([
  ['is being tried again', false],
  ['has been made anew by a reload', true],
])('a sink in trouble that %s is not taken out while events wait for it', async (_, isMadeAnew) => {
  const place = await Place.make();
  writeFileSync(place.at('down.mjs'), DOWN);
  const down = { type: './down.mjs', up: place.at('up') };
  const kept = { type: 'files', path: place.at('kept') };
  const change = (sinks: object): void =>
    place.write({ sinks, routes: [{ match: '*', to: Object.keys(sinks) }], shutdown: { deadline: '1s' } });
  change({ kept, down });
  const receiver = await place.start();
  await receiver.send(20);
  await until('it to be tried again', () =>
    receiver
      .logLines()
      .some(({ sink, from, to }) => sink === 'down' && from === 'paused' && to === 'running'),
  );
  if (isMadeAnew) {
    change({ kept, down: { ...down, most: 1e5 } });
    expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  }
  change({ kept });
  const refused = { error: expect.stringContaining('sinks.down: 20 events wait for it') };
  expect(await receiver.reload()).toMatchObject(refused);
  writeFileSync(place.at('up'), '');
  await receiver.drained();
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
});
