import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';
import { until } from '../support/until.ts';

const type = join(import.meta.dirname, 'gated-sink.ts');

test.each([
  ['is being tried again', false],
  ['has been replaced by a reload', true],
])('a sink in trouble that %s is not taken out while events wait for it', async (_, isReplaced) => {
  const place = await Place.make();
  const down = { type, folder: place.folder, shut: 'fails, then waits' };
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
  if (isReplaced) {
    change({ kept, down: { ...down, takes: 1 } });
    expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  }
  change({ kept });
  const refused = { error: expect.stringContaining('sinks.down: 20 events wait for it') };
  expect(await receiver.reload()).toMatchObject(refused);
  writeFileSync(place.at('gate'), '');
  await receiver.drained();
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
});
