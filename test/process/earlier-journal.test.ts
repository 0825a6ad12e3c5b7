import { readFileSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Place, saying } from '../support/place.ts';
import { until } from '../support/until.ts';

const type = new URL('./gated-sink.ts', import.meta.url).pathname;
const EVENTS = 20;

/** A place with a journal in which events wait, and what writes its config again. */
async function leftWaiting() {
  const place = await Place.make();
  const change = (changes: object, opens = 'at once'): void =>
    place.write({
      sinks: { gated: { type, folder: place.folder, opens, shut: 'is taken' } },
      routes: [{ match: '*', to: ['gated'] }],
      ...changes,
    });
  change({}, 'with an error');
  const receiver = await place.start();
  await receiver.send(EVENTS);
  await receiver.stop();
  return { place, change, other: { path: place.at('other') } };
}

test.each([
  ['acknowledge: delivered', ['acknowledge']],
  ['another journal.path', ['journal']],
  ['both at once', ['acknowledge', 'journal']],
])('fault 63: %s while events wait is refused, by name with the count', async (_, keys) => {
  const { place, change, other } = await leftWaiting();
  const all = { acknowledge: 'delivered', journal: other };
  const changes = Object.fromEntries(Object.entries(all).filter(([key]) => keys.includes(key)));
  change(changes);
  expect(await place.run('serve')).toMatchObject(
    saying(2, `events wait in ${place.at('journal')} (${EVENTS} for gated)`),
  );

  // What it says to do helps, and then nothing is said any more.
  change({});
  await place.ok('drain', '--journal', place.at('journal'));
  expect(readFileSync(place.at('delivered'), 'utf8').trim().split('\n')).toHaveLength(EVENTS);
  change(changes);
  await (await place.start()).send(1);
});

test('fault 63: a journal of an earlier start that is gone is named', async () => {
  const { place, change, other } = await leftWaiting();
  rmSync(place.at('journal'), { recursive: true });
  change({ journal: other });
  const receiver = await place.start();
  const named = () => receiver.logLines().find(({ journal }) => journal === place.at('journal'));
  expect(await until('the line', named)).toMatchObject({ level: 50 });
});
