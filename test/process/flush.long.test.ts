import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';
import { expectConserved, expectOnce, expectWhole } from '../support/read-back.ts';

const stdout = { out: { type: 'stdout' } };
const prepared = (): Promise<Place> =>
  Place.make((folder) => ({
    sinks: { archive: { type: 'files', path: join(folder, 'archive') }, ...stdout },
  }));

interface Flushed {
  readonly files: readonly { readonly file: string; readonly records: number }[];
}

const filesOf = (flushed: readonly Flushed[]): Flushed['files'] => flushed.flatMap(({ files }) => files);
const records = (flushed: readonly Flushed[]): number =>
  filesOf(flushed).reduce((sum, each) => sum + each.records, 0);

test('flushed events can be read at once, again and again, side by side, and after kill -9 each is there once', async () => {
  const place = await prepared();
  const flush = (...args: string[]): Promise<Flushed[]> => place.documents('flush', ...args);
  const receiver = await place.startProcess();
  const sent = await receiver.send(3);
  const send = async (count: number, to = receiver): Promise<void> => {
    for (const [id, body] of await to.send(count, sent.size)) sent.set(id, body);
  };
  const first = await flush();
  expect(first).toMatchObject([{ sink: 'archive', failed: [], waiting: false }]);
  expect(records(first)).toBe(3);
  for (const { file } of filesOf(first)) expect(existsSync(file), file).toBe(true);
  expectConserved(await place.archived(), sent);

  expect(records(await flush('archive')), 'twice').toBe(0);

  // While one closes a file, another asks, and events come in.
  const both = Promise.all([flush(), flush()]);
  await send(5);
  await both;
  await flush();
  expectConserved(await place.archived(), sent);

  await send(2);
  await flush();
  await receiver.kill('SIGKILL');
  const next = await place.startProcess();
  await send(1, next);
  await flush();
  const found = await place.archived();
  expectConserved(found, sent);
  expectOnce(found);
  await next.stop();
  await expectWhole(place.at('archive'));
});

test('what cannot be flushed is said: a sink without files, a typo, no receiver', async () => {
  const place = await prepared();
  const run = async (...args: string[]): Promise<[number | null, string]> => {
    const { code, stderr } = await place.run('flush', ...args);
    return [code, stderr];
  };
  expect(await run()).toEqual([1, expect.stringContaining('none runs with this config')]);
  const receiver = await place.startProcess();
  expect(await run('out')).toEqual([2, expect.stringContaining('sinks.out keeps no files open')]);
  expect(await run('archve')).toEqual([2, expect.stringContaining('did you mean archive?')]);
  expect(await run()).toEqual([0, 'no file was open\n']);
  expect(await place.documents('flush')).toHaveLength(1);
  await receiver.kill('SIGKILL');
  expect(await run()).toEqual([1, expect.stringContaining('Receiver cannot be reached')]);
});
