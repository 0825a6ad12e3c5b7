import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { FilesSink } from '../../src/sinks/files/sink.ts';
import type { FinishStep } from '../../src/sinks/files/target.ts';
import { checkChains, FaultyStore, recordsIn, storeSink } from './store-support.ts';
import { deliver, signal, tempFolder } from './support.ts';

const STEPS: readonly FinishStep[] = ['sealed', 'written', 'put', 'listed', 'removed'];
const OPTIONS = { rotate: { bytes: 4096 }, partitionBy: ['type'] };

/** What kill -9 leaves at a step: the disk and the store as they are then. */
async function killedAt(step: FinishStep, form: object) {
  const path = tempFolder();
  const left = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  let killed = false;
  const onStep = (now: FinishStep): void => {
    if (now !== step || killed) return;
    killed = true;
    cpSync(path, left, { recursive: true });
  };
  const { sink } = storeSink(store, join(path, 'spool'), { ...OPTIONS, ...form }, { onStep });
  await sink.open();
  for (let from = 1; from <= 41; from += 10) await sink.send(deliver(from, 10), signal);
  await sink.close(signal);
  expect(killed).toBe(true);
  return { store: await FaultyStore.in(join(left, 'store')), spool: join(left, 'spool') };
}

const FORMS = [{ compress: 'none' }, { compress: 'gzip' }];

it.each(STEPS.flatMap((step) => FORMS.map((form) => [step, form] as const)))(
  'fault 5: killed when a file is %s, %j: what the journal sends again is there once, and all is listed',
  async (step, form) => {
    const { store, spool } = await killedAt(step, form);
    // Twice, because what is mended at a start must be so at the next one.
    for (const last of [false, true]) {
      const { sink } = storeSink(store, spool, { ...OPTIONS, ...form });
      await sink.open();
      for (let from = 1; from <= 51; from += 10) await sink.send(deliver(from, 10), signal);
      await sink.close(last ? signal : AbortSignal.abort());
    }
    await checkChains(store);
    expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(
      Array.from({ length: 60 }, (_, at) => `msg_${at + 1}`).toSorted(),
    );
  },
);

it('a part that is not compressed is put without being copied, and the line has the hash of its bytes', async () => {
  const path = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  const spool = join(path, 'spool');
  const names: number[] = [];
  const onStep = (step: FinishStep): void => {
    if (step !== 'written') return;
    for (const name of readdirSync(spool, { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.part')) names.push(statSync(join(spool, name)).nlink);
  };
  const { sink } = storeSink(store, spool, { compress: 'none' }, { onStep });
  await sink.open();
  for (let from = 1; from <= 21; from += 10) await sink.send(deliver(from, 10), signal);
  await sink.close(signal);
  expect(names).toEqual([2]);
  const [file = ''] = await checkChains(store);
  const hash = createHash('sha256')
    .update(readFileSync(join(path, 'store', file)))
    .digest('hex');
  const segment = store.puts.find((key) => key.startsWith('_manifest')) ?? '';
  expect(readFileSync(join(path, 'store', segment), 'utf8')).toContain(`"sha256":"${hash}"`);
});

it('knows what lies in a spool that was full when it was killed, and puts it once', async () => {
  const path = tempFolder();
  const store = await FaultyStore.in(join(path, 'store'));
  const start = (): FilesSink => storeSink(store, join(path, 'spool'), { rotate: { bytes: 1024 } }).sink;
  const sink = start();
  await sink.open();
  store.fault = (verb) => (verb === 'putIfAbsent' ? 'no_place' : null);
  const taken: number[] = [];
  for (let from = 1; from < 1000; from += 10) {
    const [result] = await sink.send(deliver(from, 10), signal);
    if (result?.status === 'retry') break;
    taken.push(from);
  }
  await sink.close(AbortSignal.abort());
  const again = start();
  await again.open();
  const left: number[] = [];
  for (const from of taken) {
    const results = await again.send(deliver(from, 10), signal);
    if (results.some(({ status }) => status === 'retry')) left.push(from);
  }
  expect((await again.send(deliver(1001, 1), signal))[0]).toMatchObject({ status: 'retry', sink: true });
  store.fault = () => null;
  await again.flush();
  for (const from of [...left, 1001]) await again.send(deliver(from, from === 1001 ? 1 : 10), signal);
  await again.close(signal);
  await checkChains(store);
  const ids = (await recordsIn(store)).map(({ id }) => id);
  expect([left, ids.length]).toEqual([[], new Set(ids).size]);
  expect(ids).toHaveLength(taken.length * 10 + 1);
});
