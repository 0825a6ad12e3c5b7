import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ErasableStore, ErasureRun } from '../../../src/core/erasure.ts';
import type { LogHead } from '../../../src/core/receipt.ts';
import type { LocalErasures, LocalErasuresOptions } from '../../../src/privacy/erase/local-erasures.ts';
import { noteOutputs, outputsOf } from '../../../src/privacy/erase/outputs.ts';
import { type OpenedPlace, placeErasure } from '../../../src/privacy/erase/place-erasure.ts';
import { openStore } from '../../../src/storage/open.ts';
import { put } from '../../archive/store-archive.ts';
import { proofIn } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { HOUR, ManualClock } from '../../support/manual-clock.ts';
import { erasing } from './objects-support.ts';
import { eraseNow, erasuresOver, FIELDS, find, secretOf, userId } from './support.ts';

const SUBJECT = { by: 'user', id: userId(1), team: null } as const;

function store(erase: (run: ErasureRun) => void): ErasableStore {
  return { name: 'made-up', erase: (run) => Promise.resolve(erase(run)) };
}

/** The erasures of a folder, as another process has them. */
function erasures(
  folder: string,
  stores: readonly ErasableStore[] = [],
  more: Partial<LocalErasuresOptions> = {},
): LocalErasures {
  return erasuresOver(folder, stores, more).erasures;
}

test('an erasure that has begun says so on disk before a store is searched, and until its receipt', async () => {
  const folder = await temporaryFolder();
  const clock = new ManualClock();
  await erasures(folder, [], { clock }).request(SUBJECT, true);
  clock.advance(HOUR);
  const begun = new Date(clock.now()).toISOString();
  const seen: unknown[] = [];
  const failing = store((run) => {
    const [request = ''] = run.subjects.map((subject) => subject.request);
    seen.push(JSON.parse(readFileSync(join(folder, 'requests', `${request}.json`), 'utf8')));
    throw new Error('is not there');
  });
  expect(await erasures(folder, [failing], { clock }).run()).toMatchObject({ receipts: [] });
  expect(seen).toMatchObject([{ begun_at: begun }]);
  clock.advance(HOUR);
  await expect(erasures(folder, [], { clock }).cancel(SUBJECT)).rejects.toMatchObject({
    code: 'erasure_begun',
  });
  const finished = new Date(clock.now()).toISOString();
  const { receipts } = await erasures(folder, [store(() => undefined)], { clock }).run();
  expect(receipts).toMatchObject([{ begun_at: begun, finished_at: finished }]);
});

test('a damaged note of an output, and a damaged record of an earlier run, are errors that name them', async () => {
  const folder = await temporaryFolder();
  const outputs = join(folder, 'outputs.jsonl');
  await noteOutputs(folder, [folder, join(folder, 'lake')]);
  expect(outputsOf(folder)).toEqual([folder, join(folder, 'lake')]);
  const whole = readFileSync(outputs, 'utf8');
  writeFileSync(outputs, whole.replace('"place"', '"pl'));
  const damaged = {
    code: 'erasure_unreadable',
    message: expect.stringContaining(`${outputs}: line 1 is damaged`) as string,
  };
  expect(() => outputsOf(folder)).toThrow(expect.objectContaining(damaged));
  await expect(noteOutputs(folder, ['elsewhere'])).rejects.toMatchObject(damaged);
  writeFileSync(outputs, whole.replace('"place"', '"made_up"'));
  expect(() => outputsOf(folder)).toThrow('does not say which place');
  const progress = join(folder, 'progress.jsonl');
  writeFileSync(progress, '{"store":"made-\n{}\n');
  await erasures(folder).request(SUBJECT, true);
  await expect(erasures(folder, [store(() => undefined)]).run()).rejects.toThrow(
    `${progress}: line 1 is damaged`,
  );
});

test('a request that lacks something is an error that names it and no user, not one that is never due', async () => {
  const folder = await temporaryFolder();
  const { request } = await erasures(folder).request(SUBJECT, true);
  const file = join(folder, 'requests', `${request}.json`);
  const whole = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  for (const member of Object.keys(whole)) {
    writeFileSync(file, JSON.stringify({ ...whole, [member]: undefined }));
    const detail = `${file}: not a request for an erasure: ${member}`;
    await expect(erasures(folder).run()).rejects.toMatchObject({ code: 'erasure_unreadable', detail });
  }
  writeFileSync(file, JSON.stringify({ ...whole, due_at: 'soon' }));
  await expect(erasures(folder).isDue(0)).rejects.toThrow('due_at');
});

test('a request that has begun is due whatever its time', async () => {
  const folder = await temporaryFolder();
  const clock = new ManualClock();
  const failing = store(() => {
    throw new Error('is not there');
  });
  const all = erasures(folder, [failing], { clock });
  await all.request(SUBJECT, true);
  expect([await all.isDue(0), await all.isDue(HOUR)]).toEqual([true, false]);
  await all.run();
  expect([await all.isDue(0), await all.isDue(HOUR)]).toEqual([true, true]);
});

test('a receipt has the head of the log of receipts at that time, and nothing of a log where there is none', async () => {
  const folder = await temporaryFolder();
  const log: LogHead = { origin: 'made-up.example/log', size: 3, root: `${'A'.repeat(43)}=` };
  const proof = async () => ({ ...(await proofIn(folder)()), logHead: () => log });
  const { receipts } = await eraseNow(erasures(folder, [], { proof }), 1);
  expect(receipts[0]?.log).toEqual(log);
  const { receipts: others } = await eraseNow(erasures(folder), 2);
  expect(others[0]).not.toHaveProperty('log');
});

test('a receipt names the sinks that no erasure reaches, and only where there are some', async () => {
  const folder = await temporaryFolder();
  const beyond = { beyond: () => ['hubs'] };
  const { receipts } = await eraseNow(erasures(folder, [], beyond), 1);
  expect(receipts[0]?.not_reached).toEqual(['hubs']);
  const { receipts: others } = await eraseNow(erasures(folder), 2);
  expect(others[0]).not.toHaveProperty('not_reached');
});

test('an object that is put once a store was listed is searched, also when nothing else has changed', async () => {
  const root = await temporaryFolder();
  const [folder, path] = [join(root, 'erasure'), join(root, 'store')];
  await put(await openStore(path), 'early.ndjson', Buffer.from('{}\n'));
  let listings = 0;
  const late = erasing(folder, path, {}, (real) => {
    const { list } = real;
    real.list = async function* (prefix, signal) {
      yield* list.call(real, prefix, signal);
      if (prefix !== '') return;
      listings += 1;
      if (listings > 1) return;
      const row = { user_id: userId(1), note: secretOf(1) };
      await put(real, 'late.ndjson', Buffer.from(`${JSON.stringify(row)}\n`));
    };
    return real;
  });
  const { receipts, left } = await eraseNow(late, 1);
  expect(left).toEqual([]);
  expect(receipts).toMatchObject([{ items: [{ item: 'late.ndjson' }] }]);
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
});

/** A place in which each look at a file finds that it has gone, so many times. */
async function restless(times: number, leastPasses = 1) {
  const calls = { lists: 0, finished: 0, closed: 0 };
  const place: OpenedPlace = {
    store: await openStore(await temporaryFolder()),
    word: 'objects',
    leastPasses,
    list: () => {
      calls.lists += 1;
      return Promise.resolve(new Map([['made-up.ndjson', '']]));
    },
    erase: (files) => Promise.resolve(calls.lists <= times ? files : []),
    finish: () => Promise.resolve(void (calls.finished += 1)),
    close: () => Promise.resolve(void (calls.closed += 1)),
  };
  const open = () => Promise.resolve(place);
  return { calls, store: placeErasure({ name: 'made-up', open, fields: FIELDS }) };
}

test.each([
  { times: 0, leastPasses: 1, lists: 1 },
  { times: 0, leastPasses: 2, lists: 2 },
  { times: 1, leastPasses: 1, lists: 2 },
  { times: 4, leastPasses: 2, lists: 5 },
])(
  'a place whose files go $times times, to be listed $leastPasses times at least, is listed $lists times',
  async ({ times, leastPasses, lists }) => {
    const { calls, store: place } = await restless(times, leastPasses);
    expect(await eraseNow(erasures(await temporaryFolder(), [place]), 1)).toMatchObject({ left: [] });
    expect(calls).toEqual({ lists, finished: 1, closed: 1 });
  },
);

test('a place whose files go all the time is left after five lists, and the request waits', async () => {
  const { calls, store: place } = await restless(Infinity, 2);
  const all = erasures(await temporaryFolder(), [place]);
  const { left } = await eraseNow(all, 1);
  const reason = 'objects come and go faster than they can be searched';
  expect(left).toMatchObject([{ store: 'made-up', item: 'made-up.ndjson', reason }]);
  expect((await all.list()).waiting).toHaveLength(1);
  expect(calls).toEqual({ lists: 5, finished: 1, closed: 1 });
});
