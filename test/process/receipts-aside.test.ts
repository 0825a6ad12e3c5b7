import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { millrace } from '../support/millrace.ts';
import { printing } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';
import {
  bodyOf,
  entryOf,
  filesBelow,
  type Kept,
  post,
  proofs,
  proved,
  receiptsPlace,
  send,
  userOf,
} from './receipts-scene.ts';

test('an erasure of what is in quarantine alone names its entries', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  await post(receiver, 'good', bodyOf(1));
  const theirs = [
    await post(receiver, 'bad1', bodyOf(2, false)),
    await post(receiver, 'bad2', bodyOf(2, false)),
  ];
  await place.ok('erase', userOf(2), '--now');
  const receipts = readdirSync(place.at('erasure', 'receipts')).map((name) =>
    readFileSync(place.at('erasure', 'receipts', name), 'utf8'),
  );
  const items = receipts.flatMap((text) => (JSON.parse(text) as { items: { entries?: string[] }[] }).items);
  expect(items.flatMap(({ entries = [] }) => entries).toSorted()).toEqual(theirs.map(entryOf).toSorted());
  await receiver.stop();
  expect(await proved(place, place.at('archive'))).toMatchObject({
    code: 0,
    archived: 1,
    erased: 2,
    missing: [],
  });
});

test('a dead letter that was dropped stays explained, whatever its sink is called later, and explains no other archive', async () => {
  const retries = { retryInitial: '50ms', retryMax: '100ms', giveUpAfter: '300ms' };
  const place = await receiptsPlace(() => ({ delivery: retries }));
  const archive = place.at('archive');
  mkdirSync(archive);
  let receiver: Serving = await place.start();
  await post(receiver, 'e0', bodyOf(1));
  await receiver.drained();
  await place.ok('flush');
  // A file in the folder's place refuses what comes.
  renameSync(archive, `${archive}.away`);
  writeFileSync(archive, '');
  await post(receiver, 'e1', bodyOf(1));
  const [dead] = await until('a dead letter', async () => {
    const found = await place.documents('dead-letters', 'list');
    return found.length > 0 && found;
  });
  expect(await place.json('dead-letters', 'drop', String(dead.key))).toMatchObject({ dropped: 1 });
  rmSync(archive);
  renameSync(`${archive}.away`, archive);
  await receiver.stop();
  const explained = { code: 0, archived: 1, dropped: 1, unclear: [], missing: [] };
  expect(await proved(place, archive)).toMatchObject(explained);
  const only = (name: string, sink: object): void =>
    place.edit((config) => {
      config.sinks = { [name]: { type: 'files', ...sink } };
      config.routes = [{ match: '*', to: [name] }];
    });
  // Renamed twice, and what it continued for is taken out of the config again.
  for (const [name, continues] of [['lake', 'archive'], ['lake'], ['pond', 'lake'], ['pond']] as const) {
    only(name, { path: archive, continues });
    receiver = await place.start();
    await receiver.stop();
    expect([name, continues, await proved(place, archive)]).toMatchObject([name, continues, explained]);
    expect(await place.json('reconcile')).toMatchObject({ code: 0, differences: [] });
  }
  // Another archive under the name of then: its sink did not drop it.
  const other = place.at('other');
  renameSync(archive, other);
  only('archive', { path: other });
  expect(await proved(place, other)).toMatchObject({ code: 3, dropped: 0, unclear: [1], missing: [] });
});

test('a log that has just begun proves nothing and accuses no one, and a place without one is no log', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const log = place.at('receipts');
  const key = ['--key', (await (await fetch(new URL('/receipts/key', receiver.url))).text()).trim()];
  const proves = (at: string) => millrace(['archive', 'prove', place.at('archive'), '--log', at, ...key]);
  for (const at of [new URL('/receipts', receiver.url).href, log])
    expect(await proves(at)).toMatchObject(printing(0, 'nothing to prove'));
  await proofs(receiver, await send(receiver, 1));
  for (const nowhere of [place.at('nowhere'), new URL('/elsewhere', receiver.url).href])
    expect((await proves(nowhere)).code).toBe(1);
  await receiver.stop();
  // Its checkpoint taken away, it is not empty.
  rmSync(join(log, 'checkpoint'));
  expect((await proves(log)).code).toBe(1);
});

test('a line whose time is no time is named by what is missing, and does not hold up an erasure', async () => {
  const place = await receiptsPlace((folder) => ({
    sinks: { archive: { type: 'files', path: join(folder, 'archive'), compress: 'none' } },
  }));
  const receiver = await place.start();
  const kept = await send(receiver, 10);
  await proofs(receiver, kept);
  await receiver.stop();
  const [victim] = kept as [Kept];
  const file = filesBelow(place.at('archive')).find((name) => /dt=.*\.ndjson$/.test(name))!;
  const lines = readFileSync(file, 'utf8').split('\n');
  for (const time of ['x', '1960-01-01T00:00:00.000Z']) {
    const changed = lines.map((line) =>
      line.includes(victim.id) ? line.replace(/"received_at":"[^"]+"/, `"received_at":"${time}"`) : line,
    );
    writeFileSync(file, changed.join('\n'));
    const proven = { code: 4, archived: 9, missing: [victim.leaf] };
    expect(await proved(place, place.at('archive'))).toMatchObject(proven);
  }
  const erased = await place.run('erase', victim.user, '--now');
  expect(erased.stderr).not.toContain('BigInt');
  expect(readFileSync(file, 'utf8')).not.toContain(victim.user);
});
