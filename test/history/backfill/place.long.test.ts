import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it, onTestFinished, vi } from 'vitest';
import { readWhole, removePermanently } from '../../../src/core/objects.ts';
import { openStore } from '../../../src/storage/open.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { describeOnStores, storageSettings } from '../../support/object-stores/emulators.ts';
import { startFaultProxy } from '../../support/object-stores/fault-proxy.ts';
import { environment, sandbox } from './support.ts';

const LOADED = ['--loaded-at', '2026-11-21T10:00:00Z'];

describeOnStores(
  ' as the place of fetched tables',
  async (emulator) => {
    const proxy = await startFaultProxy(emulator.url);
    afterAll(() => proxy.stop());
    const bucket = await emulator.bucket('tables');
    let places = 0;

    async function place() {
      const url = `${bucket}/${(places += 1)}`;
      const store = await openStore(url, storageSettings(emulator.settings()));
      onTestFinished(() => {
        proxy.inject(() => null);
        vi.unstubAllEnvs();
        return store.close();
      });
      vi.stubEnv('AWS_ENDPOINT_URL_S3', proxy.url);
      vi.stubEnv('AWS_REGION', 'us-east-1');
      vi.stubEnv('AWS_ACCESS_KEY_ID', 'made-up');
      vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'made-up');
      const objects = async (): Promise<Record<string, string>> => {
        const found: Record<string, string> = {};
        for await (const { key } of store.list('')) found[key] = (await readWhole(store, key)).toString();
        return found;
      };
      return { url, store, objects, work: await temporaryFolder() };
    }

    it('pull: the files of a folder, once, wherever it was ended', async () => {
      const service = await sandbox({ users: 2 });
      const env = environment(service);
      const cwd = await temporaryFolder();
      await millrace(['pull', 'markers', '--out', cwd, ...LOADED], { env, cwd });
      const expected = filesIn(cwd);
      expect(Object.keys(expected)).toContain('markers.ndjson');
      const { url, objects, work } = await place();
      const pull = (folder = work, ...args: string[]) =>
        millrace(['pull', 'markers', '--out', url, '--work', folder, ...LOADED, ...args], { env, cwd });
      // Ended before anything is there, before the last file, and before the list of them.
      for (const part of ['_pull-markers/begun', 'markers.ndjson', '_pull-markers/files']) {
        let isEnded = false;
        // From here on there is no store.
        proxy.inject(({ url: path, method }) => {
          if (isEnded) return 'cut';
          isEnded = method === 'PUT' && path?.includes(part) === true;
          return isEnded ? 'lost' : null;
        });
        expect((await pull()).code).not.toBe(0);
      }
      proxy.inject(() => null);
      const ended = await pull();
      expect([ended.code, ended.stderr]).toEqual([0, expect.any(String)]);
      expect(tablesOf(await objects())).toEqual(expected);
      expect(readdirSync(work)).toEqual([]);
      const again = await pull();
      expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('name another place')]);
      const other = await pull(await temporaryFolder());
      expect(other.code).toBe(2);
      expect(tablesOf(await objects())).toEqual(expected);
    });

    it('backfill: a second machine is refused with the name of the first, and the first continues', async () => {
      const service = await sandbox({ users: 3 });
      const env = environment(service);
      const cwd = await temporaryFolder();
      const plan = ['--all-users', '--since', '2026-01-01', '--until', '2026-12-31', ...LOADED];
      await millrace(['backfill', ...plan, '--out', cwd], { env, cwd });
      const { url, store, objects, work } = await place();
      const backfill = (folder: string, ...args: string[]) =>
        millrace(['backfill', '--out', url, '--work', folder, ...args], { env, cwd });
      proxy.inject(({ method, url: path }) =>
        method === 'PUT' && path?.includes('meal_items') === true ? 'cut' : null,
      );
      expect((await backfill(work, ...plan)).code).toBe(1);
      proxy.inject(() => null);
      const second = await backfill(await temporaryFolder(), ...plan);
      expect([second.code, second.stderr]).toEqual([2, expect.stringContaining(`work folder ${work}`)]);
      const resumed = await backfill(work, '--resume', '--json');
      expect([resumed.code, resumed.stderr]).toEqual([0, expect.any(String)]);
      expect(JSON.parse(resumed.stdout)).toMatchObject({
        files: expect.arrayContaining([`${url}/meals.ndjson`]) as unknown,
      });
      expect(tablesOf(await objects())).toEqual(filesIn(cwd));
      // A Job that repeats its command has nothing left to do, as in a folder.
      const done = await backfill(work, '--resume');
      expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('is complete')]);
      await removePermanently(store, ['meals.ndjson'], AbortSignal.timeout(10_000));
      const lost = await backfill(work, '--resume');
      expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining('/meals.ndjson is not there')]);
    });
    // The commands find the others by their configs, and this one by variables.
  },
  ['s3'],
);

const filesIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name.endsWith('.ndjson'))
      .map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const)
      // Nothing was rejected.
      .filter(([, text]) => text !== ''),
  );
const tablesOf = (objects: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(objects).filter(([key]) => key.endsWith('.ndjson')));
