import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ReplayOrders } from '../../../src/observe/admin/replay-orders.ts';
import { Replays } from '../../../src/observe/admin/replays.ts';
import { hasFinished, noteFinished } from '../../../src/replay/finished.ts';
import { temporaryFolder } from '../../support/folders.ts';

const ORDER = { from: 'journal', to: 'target', types: [] };
const [GONE, DONE, DAMAGED, BEGUN] = ['gone', 'done', 'bad-', 'kept'].map(
  (name) => `console-made-up-${name}`,
);

/** The replays of a receiver that starts now. */
function start(folder: string): Replays {
  return new Replays({
    config: join(folder, 'unused.yaml'),
    orders: new ReplayOrders(join(folder, 'journal')),
    hasFinished: (id) => hasFinished(join(folder, 'replay'), id),
    sinks: () => new Map([['target', {}]]),
  });
}

test('after a restart nothing is done that has not said so, and what is damaged or missing is named', async () => {
  const folder = await temporaryFolder();
  expect(start(folder).list()).toEqual([]);
  const orders = new ReplayOrders(join(folder, 'journal'));
  const replay = join(folder, 'replay');
  mkdirSync(replay);
  for (const id of [GONE, DONE, BEGUN]) await orders.write(id as string, ORDER);
  mkdirSync(orders.stateOf(BEGUN as string));
  await noteFinished(
    replay,
    { fingerprint: 'made up', state: orders.stateOf(DONE as string) },
    DONE as string,
  );
  writeFileSync(join(replay, `${DAMAGED}.json`), '{"from":');

  const replays = start(folder);
  const state = (id = '') => [replays.get(id).state, replays.get(id).detail];
  expect(replays.list()).toHaveLength(4);
  expect(state(BEGUN)).toEqual(['interrupted', 'the receiver ended before it did']);
  expect(state(DONE)).toEqual(['done', 'it was done after the receiver had ended']);
  expect(state(GONE)).toEqual([
    'failed',
    expect.stringContaining(`${join(replay, GONE as string)} is missing`),
  ]);
  expect(state(DAMAGED)).toEqual(['failed', expect.stringContaining(`${DAMAGED}.json is damaged`)]);
  expect(new Set(orders.ids())).toEqual(new Set([GONE, DAMAGED, BEGUN]));

  expect((await replays.start(GONE as string)).state).toBe('failed');
  await expect(replays.start(DAMAGED as string)).rejects.toMatchObject({ code: 'usage' });
  replays.forget(DAMAGED as string);
  expect(existsSync(join(replay, `${DAMAGED}.json`))).toBe(false);
});

test('orders that cannot be read are an error, not none', async () => {
  const folder = await temporaryFolder();
  const replay = join(folder, 'replay');
  writeFileSync(replay, '');
  const named = { code: 'folder_unwritable', detail: expect.stringContaining(replay) as unknown };
  expect(() => start(folder).list()).toThrow(expect.objectContaining(named));
});
