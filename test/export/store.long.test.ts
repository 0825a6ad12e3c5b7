import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readWhole } from '../../src/core/objects.ts';
import type { ExportOptions } from '../../src/export/options.ts';
import { openStore } from '../../src/storage/open.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnStores } from '../support/object-stores/emulators.ts';
import { startFaultProxy, writtenBy } from '../support/object-stores/fault-proxy.ts';
import { placeIn } from './places.ts';
import { archive, exported, mealEvents, archived } from './support.ts';

/** Requests between those that a run is ended after; 1 takes ten minutes. */
const EVERY = 20;
/** Milliseconds: every single request takes a while. */
const LONG = 900_000;

describeOnStores(' as the place of an export', async (emulator, scheme) => {
  const proxy = await startFaultProxy(emulator.url);
  afterAll(() => proxy.stop());
  const bucket = await emulator.bucket('exports');

  /** A place of its own in the bucket, and runs of exports to it. */
  async function place(options: Partial<ExportOptions> = {}) {
    const { url, storage, store } = await placeIn(emulator, bucket, proxy);
    const work = await temporaryFolder();
    const run = (path: string, more: Partial<ExportOptions> = {}) =>
      exported([path], url, { table: 'meals', work, storage, ...options, ...more });
    /** SHA-256 of the objects, by key; what says when and by whom is left out of the ledger and the logs. */
    const objects = async (): Promise<Record<string, string>> => {
      const found: Record<string, string> = {};
      for await (const { key } of store.list('')) {
        // A checkpoint is compressed, times and all.
        if (key.includes('checkpoint')) found[key] = '';
        if (key.includes('checkpoint')) continue;
        const bytes = await readWhole(store, key);
        found[key] = createHash('sha256')
          .update(key.endsWith('.json') ? lasting(bytes) : bytes)
          .digest('hex');
      }
      return found;
    };
    return { url, run, objects, work, store };
  }

  for (const format of ['parquet', 'delta'] as const)
    it(
      `${format}: ended at any request, with or without effect, and run again, it is as if nothing had happened`,
      async () => {
        const path = await archived(mealEvents(1, 6));
        const undisturbed = await place({ format });
        const before = proxy.requests;
        await undisturbed.run(path);
        await undisturbed.run(path, { again: true });
        const requests = proxy.requests - before;
        const expected = await undisturbed.objects();
        for (let at = 1; at < requests; at += EVERY) {
          const { run, objects } = await place({ format });
          let count = 0;
          const fault = at % 2 === 0 ? 'lost' : 'cut';
          // From this request on there is no store.
          proxy.inject(() => ((count += 1) < at ? null : count === at ? fault : 'cut'));
          const ended = await run(path)
            .then(
              () => run(path, { again: true }),
              () => 'ended',
            )
            .catch(() => 'ended');
          proxy.inject(() => null);
          expect(ended).toBe('ended');
          await run(path);
          const steps = await stepsOf(objects);
          if (steps === 1) await run(path, { again: true });
          expect(await objects()).toEqual(expected);
        }
      },
      LONG,
    );

  it('holds the same files as a folder', async () => {
    const [path, out] = [await archived(mealEvents(1, 30)), await temporaryFolder()];
    await exported([path], out, { table: 'meals' });
    const { run, store } = await place();
    expect(await run(path)).toMatchObject({ complete: true, rows: { meals: 30 } });
    expect(await run(path)).toMatchObject({ complete: true, steps: 0, before: 3 });
    const local = await openStore(out);
    const keys = async (of: typeof store) => {
      const found = [];
      for await (const { key } of of.list('meals/'))
        found.push([key, (await readWhole(of, key)).toString('base64')]);
      return found;
    };
    expect(await keys(store)).toEqual(await keys(local));
  });

  it('of two machines at once one exports, and the other ends with exit code 2 or has nothing to do', async () => {
    const path = await archived(mealEvents(1, 30));
    const { run, objects } = await place({ format: 'delta' });
    const other = await temporaryFolder();
    const ended = await Promise.allSettled([run(path), run(path, { work: other })]);
    const lost = ended
      .filter((one) => one.status === 'rejected')
      .map(({ reason }) => reason as { code: string; message: string });
    for (const { code, message } of lost) {
      expect(code).toBe('folder_in_use');
      expect(message).toMatch(/process \d+ on .+ is exporting to it too/);
    }
    expect(lost.length).toBeLessThan(2);
    expect(await stepsOf(objects)).toBe(1);
    // Either continues.
    await archive(path, mealEvents(31, 31));
    expect(await run(path, { work: other })).toMatchObject({ complete: true, rows: { meals: 1 } });
  });

  it('a step that one machine has begun another finishes with the same bytes, or says that it cannot', async () => {
    const path = await archived(mealEvents(1, 6));
    const undisturbed = await place();
    await undisturbed.run(path);
    const { run, objects, work } = await place();
    // After the line is there, before its files are.
    proxy.inject((request, body) => (writtenBy(request, body)?.includes('part-') === true ? 'cut' : null));
    await expect(run(path)).rejects.toThrow('part-000001');
    proxy.inject(() => null);
    rmSync(join(work, '_work'), { recursive: true });
    const changed = await temporaryFolder();
    await archive(changed, mealEvents(2, 6));
    await expect(run(changed, { work: await temporaryFolder() })).rejects.toMatchObject({
      code: 'folder_in_use',
    });
    await run(path, { work: await temporaryFolder() });
    expect(await objects()).toEqual(await undisturbed.objects());
  });

  it('a machine that stood still while another replaced its step brings none of its files back', async () => {
    const path = await archived(mealEvents(1, 6));
    const { run, objects } = await place();
    const reached = Promise.withResolvers<void>();
    const unblocked = Promise.withResolvers<null>();
    let isFirst = true;
    proxy.inject((request, body) => {
      if (!isFirst || writtenBy(request, body)?.includes('part-000001') !== true) return null;
      isFirst = false;
      reached.resolve();
      return unblocked.promise;
    });
    const slow = run(path).catch((error: unknown) => error);
    await reached.promise;
    const other = { work: await temporaryFolder() };
    await run(path, other);
    await run(path, { ...other, again: true });
    unblocked.resolve(null);
    expect(await slow).toMatchObject({ code: 'folder_in_use' });
    const files = Object.keys(await objects()).filter((key) => key.includes('/part-'));
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((key) => key.includes('part-000001'))).toEqual([]);
  });

  it('another export in its place, and a work folder in use, are refused', async () => {
    const path = await archived(mealEvents(1, 3));
    const { run, url } = await place();
    await run(path);
    const usage = expect.objectContaining({
      code: 'usage',
      detail: expect.stringContaining(url) as unknown,
    }) as unknown;
    await expect(run(path, { format: 'ndjson' })).rejects.toEqual(usage);
    expect(url.startsWith(`${scheme}://`)).toBe(true);
  });
});

/** Without times, ids and names of machines. */
function lasting(bytes: Buffer): string {
  return bytes
    .toString()
    .replaceAll(/"(id|txnId|appId|at|work|host)":"[^"]*"/g, '"$1":""')
    .replaceAll(
      /"(timestamp|modificationTime|createdTime|deletionTimestamp|lastUpdated|process)":\d+/g,
      '"$1":0',
    );
}

async function stepsOf(objects: () => Promise<Record<string, string>>): Promise<number> {
  return Object.keys(await objects()).filter((key) => key.startsWith('_export/')).length - 1;
}
