import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, expect, it } from 'vitest';
import { readWhole } from '../../src/core/objects.ts';
import type { ExportFormat } from '../../src/export/rows.ts';
import { openStore } from '../../src/storage/open.ts';
import { objectsIn } from '../privacy/erase/objects-support.ts';
import { erasuresOver, folderStore } from '../privacy/erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnStores } from '../support/object-stores/emulators.ts';
import { startFaultProxy, writtenBy } from '../support/object-stores/fault-proxy.ts';
import { placeIn } from './places.ts';
import { archive, duckdb, exported, mealEvents } from './support.ts';

const FORMATS = ['ndjson', 'parquet', 'delta'] as const;

describeOnStores(' as the place of an export that is erased from', async (emulator) => {
  const proxy = await startFaultProxy(emulator.url);
  afterAll(() => proxy.stop());
  const bucket = await emulator.bucket('erased');

  /** An archive in a folder, an export of it in the bucket, and erasures of both or of the export alone. */
  async function place(format: ExportFormat | 'delta') {
    const { url, storage, store } = await placeIn(emulator, bucket, proxy);
    const [path, work] = [await temporaryFolder(), await temporaryFolder()];
    const run = (own = work) =>
      exported([path], url, { table: 'meals', format, partition: 'none', work: own, storage });
    const erase = async (user: number, archives: readonly string[] = [path]): Promise<void> => {
      const folder = await temporaryFolder();
      const open = () => openStore(url, storage);
      const objects = objectsIn(folder, open, { name: url, isArchive: false });
      const { erasures } = erasuresOver(folder, [...archives.map((one) => folderStore(one)), objects]);
      await erasures.request({ by: 'user', id: `user-${user}`, team: null }, true);
      const { receipts, left } = await erasures.run();
      // Plain Parquet is not searched, nor what no Delta log names: an export replaces both.
      if (format === 'ndjson') expect({ left, done: receipts.length }).toEqual({ left: [], done: 1 });
    };
    /** `user id` of every row of the table. */
    const rows = async (): Promise<string[]> => {
      const keys: string[] = [];
      for await (const { key } of store.list('meals/')) if (key.includes('part-')) keys.push(key);
      const bodies = await Promise.all(keys.map((key) => readWhole(store, key)));
      if (format === 'ndjson') return idsIn(bodies.map((bytes) => gunzipSync(bytes)));
      if (keys.length === 0) return [];
      const folder = mkdtempSync(join(work, 'read-'));
      for (const [at, bytes] of bodies.entries()) writeFileSync(join(folder, `${at}.parquet`), bytes);
      const sql = await duckdb();
      const found = await sql(`SELECT user_id || ' ' || id FROM read_parquet('${folder}/*.parquet')`);
      rmSync(folder, { recursive: true });
      return found.map(([row]) => String(row)).sort();
    };
    return { path, work, run, erase, rows };
  }

  for (const format of FORMATS) {
    it(`${format}: continues after erasures, with new events and without, here and on another machine`, async () => {
      const { path, run, erase, rows } = await place(format);
      const isAsTheArchive = async (own?: string) => {
        expect(await run(own)).toMatchObject({ complete: true });
        expect(await rows()).toEqual(archived(path));
        expect(await run(own)).toMatchObject({ complete: true, steps: 0 });
      };
      await archive(path, mealEvents(1, 12));
      await isAsTheArchive();
      await erase(1);
      await isAsTheArchive();
      await archive(path, mealEvents(13, 20));
      await isAsTheArchive();
      await erase(2);
      await isAsTheArchive(await temporaryFolder());
      expect((await rows()).join()).not.toContain('user-2 ');
    });

    it(`${format}: what is erased between two runs of one that was killed never comes back`, async () => {
      const { path, work, run, erase, rows } = await place(format);
      await archive(path, mealEvents(1, 12));
      await run();
      await archive(path, mealEvents(13, 26));
      const isFile = (of: RegExp) =>
        proxy.inject((request, body) => (of.test(writtenBy(request, body) ?? '') ? 'cut' : null));
      // After the line and the file of the other table.
      isFile(/meals\/part-000002/);
      await expect(run()).rejects.toThrow('part-');
      proxy.inject(() => null);
      await erase(3);
      // The work folder still has the rows; a run that gets no further than to begin brings none of them.
      const seen: string[] = [];
      proxy.inject((request, body) => {
        const key = writtenBy(request, body);
        if (key !== null) seen.push(key);
        return key?.includes('_export/') === true ? 'cut' : null;
      });
      await expect(run()).rejects.toThrow('_export');
      proxy.inject(() => null);
      expect(seen.filter((key) => key.includes('part-'))).toEqual([]);
      expect(readdirSync(join(work, '_work'))).toEqual([]);
      // Plain Parquet is not searched by an erasure: the export replaces it.
      if (format !== 'parquet') expect((await rows()).join()).not.toContain('user-3 ');
      expect(await run()).toMatchObject({ complete: true });
      expect(await rows()).toEqual(archived(path));
      await erase(4);
      expect(await run(await temporaryFolder())).toMatchObject({ complete: true });
      expect(await rows()).toEqual(archived(path));
    });
  }

  it('continues when only the export was erased from, its archive being another’s', async () => {
    const { path, run, erase, rows } = await place('ndjson');
    await archive(path, mealEvents(1, 30));
    await run();
    await erase(5, []);
    const left = archived(path).filter((row) => !row.startsWith('user-5 '));
    expect(await rows()).toEqual(left);
    expect(await run()).toMatchObject({ complete: true, steps: 0 });
    expect(await rows()).toEqual(left);
  });
});

/** What the archive holds, by another reading than the product's. */
function archived(path: string): string[] {
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
  const bodies = files
    .filter((name) => /^dt=.*\.ndjson\.gz$/.test(name))
    .map((name) => gunzipSync(readFileSync(join(path, name))));
  return idsIn(bodies);
}

function idsIn(bodies: readonly Buffer[]): string[] {
  const lines = bodies.flatMap((bytes) => bytes.toString().split('\n').filter(Boolean));
  return lines
    .map((line) => {
      const [, user] = /"user_id":"([^"]+)"/.exec(line) ?? [];
      const [, id] = /"(00000000-0000-4000-8000-\d{12})"/.exec(line) ?? [];
      return `${user} ${id}`;
    })
    .sort();
}
