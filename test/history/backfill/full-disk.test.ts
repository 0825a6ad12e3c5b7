import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { fillDisk, lacksMount, mountTmpfs } from '../../support/mounts.ts';
import { skipped } from '../../support/requirements.ts';
import { standIn } from './stand-in.ts';
import { rowIds } from './support.ts';

const RANGE = ['--all-users', '--since', '2026-01-01', '--until', '2026-01-31'];
const lack = lacksMount();

test.skipIf(lack !== null)(
  `a full disk ends a backfill, which continues when there is room${skipped(lack)}`,
  async () => {
    const service = await standIn({ users: 4, meals: 31 });
    const disk = join(await temporaryFolder(), 'disk');
    onTestFinished(mountTmpfs(disk, '1m'));
    const out = join(disk, 'out');
    const run = (...args: readonly string[]): Promise<Ended> =>
      millrace(['backfill', '--out', out, '--json', ...args], { env: service.env, cwd: disk });
    // It fills while the first user's meals come.
    const full = join(disk, 'full');
    service.instead = (path) => {
      if (path !== '/v2/user') fillDisk(full);
      return null;
    };
    const ended = await run(...RANGE, '--concurrency', '1');
    expect([ended.code, ended.stdout]).toEqual([1, '']);
    expect(ended.stderr).toMatch(/ENOSPC.*make room/);
    expect([...service.asked.values()]).toEqual([1]);
    rmSync(full);
    service.instead = () => null;
    const resumed = await run('--resume');
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.any(String)]);
    expect(rowIds(join(out, 'meals.ndjson'))).toEqual(service.mealIds());
  },
);
