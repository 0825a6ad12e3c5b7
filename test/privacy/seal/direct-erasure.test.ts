import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parseOptions } from '../../../src/sinks/files/config.ts';
import { createSink } from '../../../src/sinks/files/sink.ts';
import { FaultyStore, URL } from '../../sinks/store-support.ts';
import { deliver, makeContext, signal } from '../../sinks/support.ts';
import { OpensSealed } from './open-sealed.ts';
import { MASTER, runOf, sealedPlace, subject } from './support.ts';

const ROUNDS = 12;
const USERS = ['user-1', 'user-2', 'user-3'];

async function scene() {
  const { path: archive, store: keys, encrypt } = await sealedPlace();
  const store = await FaultyStore.in(archive);
  const context = { ...makeContext(), openStore: () => Promise.resolve(store) };
  const options = { path: URL, spool: 'none', compress: 'none', partitionBy: ['type'], encrypt };
  const sink = createSink(parseOptions(options), context);
  await sink.open(signal);
  const erase = (user: string): unknown =>
    sink.erasable?.()?.erase(runOf([subject(user)], { leave: () => undefined }));
  return { archive, keys, sink, erase };
}

/** Ids of the records that open, read without the product. */
function opened(archive: string, keys: string): string[] {
  const opener = new OpensSealed(keys, MASTER);
  const files = readdirSync(archive, { recursive: true, encoding: 'utf8' });
  return files
    .filter((name) => name.endsWith('.ndjson'))
    .flatMap((name) => readFileSync(join(archive, name), 'utf8').trimEnd().split('\n'))
    .filter((line) => line.startsWith('{"sealed":'))
    .map((line) => opener.open(line))
    .flatMap((record) => (record === 'erased' ? [] : [(record as { id: string }).id]))
    .toSorted();
}

// Who held the keys of one folder and waited for those of the next waited for ever, when an erasure came between.
test('an erasure holds up no batch of several folders, and removes its user alone', async () => {
  const { archive, keys, sink, erase } = await scene();
  const kept: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const batch = USERS.flatMap((user, n) => deliver(round * 10 + n + 1, 1, { user, type: `type.${n}` }));
    kept.push(...batch.flatMap(({ event }) => (event.user === 'user-2' ? [] : [event.id])));
    const sending = sink.send(batch, signal);
    for (let turn = 0; turn < round % 6; turn += 1) await setImmediate();
    const [results] = await Promise.all([sending, erase('user-2')]);
    expect(results.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered']);
  }
  await erase('user-2');
  expect(opened(archive, keys)).toEqual(kept.toSorted());
  await sink.close(signal);
});
