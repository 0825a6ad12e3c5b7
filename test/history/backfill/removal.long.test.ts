import { execFile } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/start.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { childEnvironment, MAIN } from '../../support/millrace.ts';
import { backfill, environment, mealIds, rowIds, sandbox, type Range } from './support.ts';

const PRELOAD = fileURLToPath(new URL('./killing-removal.ts', import.meta.url));
const FIRST: Range = { since: '2026-01-01', until: '2026-01-03' };
const SECOND: Range = { since: '2026-01-06', until: '2026-01-07' };

const flags = ({ since, until }: Range): string[] => [
  '--all-users',
  '--since',
  since,
  '--until',
  until,
  '--replace',
];

/** Ended by the kill before the nth removal: true; there were fewer: false. */
function killedBefore(nth: number, service: Sandbox, out: string): Promise<boolean> {
  const args = ['--import', PRELOAD, MAIN, 'backfill', '--out', out, ...flags(FIRST)];
  const env = childEnvironment({ ...environment(service), KILL_BEFORE_REMOVAL: String(nth) });
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { env }, () => resolve(child.signalCode === 'SIGKILL'));
  });
}

test('killed at each step of removing its state, a backfill leaves no row for the next range in its folder', async () => {
  const service = await sandbox({ users: 1 });
  const wanted = { first: await mealIds(service, FIRST), second: await mealIds(service, SECOND) };
  let steps = 0;
  let refused = 0;
  for (let nth = 1; ; nth += 1) {
    const out = await temporaryFolder();
    if (!(await killedBefore(nth, service, out))) break;
    steps += 1;
    expect(rowIds(join(out, 'meals.ndjson'))).toEqual(wanted.first);
    let next = await backfill(service, out, ...flags(SECOND));
    if (next.code === 2) {
      // As long as the state is there it can be resumed, and is in the way.
      refused += 1;
      expect(next.stderr).toContain('--resume');
      const resumed = await backfill(service, out, '--resume');
      expect([resumed.code, rowIds(join(out, 'meals.ndjson'))]).toEqual([0, wanted.first]);
      next = await backfill(service, out, ...flags(SECOND));
    }
    expect([nth, next.code, rowIds(join(out, 'meals.ndjson'))]).toEqual([nth, 0, wanted.second]);
    expect(existsSync(join(out, '_backfill'))).toBe(false);
  }
  // The note that it has ended; one segment; the state; the two folders around them.
  expect([steps, refused]).toEqual([1 + 1 + 1 + 2, 1]);
});

test('a segment that was noted but is not there is an error that names the file', async () => {
  const service = await sandbox({ users: 3 });
  const out = await temporaryFolder();
  // Up to the first removal all of it is there.
  expect(await killedBefore(1, service, out)).toBe(true);
  const lost = readdirSync(out, { recursive: true, encoding: 'utf8' }).find((name) =>
    /_backfill\/.*\/segment-000000\.ndjson$/.test(name),
  );
  rmSync(join(out, lost ?? ''));
  const resumed = await backfill(service, out, '--resume');
  expect([resumed.code, resumed.stdout]).toEqual([1, '']);
  expect(resumed.stderr).toContain(`${lost} is not there, and has rows that were fetched`);
});
