import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';
import { endChild, isRunning } from '../../support/child-server.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { firstLack, lacksRoot, skipped } from '../../support/requirements.ts';
import { lacksStrace, straceOn } from '../../support/strace.ts';
import { until } from '../../support/until.ts';

const CHILD = fileURLToPath(new URL('follower-child.ts', import.meta.url));
/** Microseconds: longer than any test. */
const VERY_LONG = 1e9;
const lack = firstLack(lacksRoot(), lacksStrace());

describe.skipIf(lack !== null)(`a shared list of erased users that hangs${skipped(lack)}`, () => {
  test('holds up no look-up, and counts again when it answers', async () => {
    const folder = await temporaryFolder();
    const other = ErasedUsers.open(folder);
    const block = (id: string): Promise<void> =>
      other.block({ by: 'user', id, team: null, request: 'made-up' }, '2026-01-01T00:00:00Z');
    await block('somebody else');
    const child = spawn(process.execPath, [CHILD, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => endChild(child));
    const answers: string[] = [];
    child.stdout.setEncoding('utf8').on('data', (text: string) => answers.push(...text.trim().split('\n')));
    const answered = (count: number): Promise<true> =>
      until('answers', () => isRunning('the child', child) && answers.length >= count);
    await answered(1);
    const calls = 'open,openat,stat,lstat,newfstatat,statx';
    const list = join(folder, 'erased.jsonl');
    const [program, ...args] = straceOn(child.pid ?? 0, `delay_enter=${VERY_LONG}`, list, calls);
    const tracer = spawn(program, args, { stdio: 'inherit' });
    onTestFinished(() => endChild(tracer));
    await until('a look to hang', () => isRunning('strace', tracer) && hasStopped(child.pid ?? 0));
    await block('gone');
    await answered(answers.length + 50);
    expect(new Set(answers)).toEqual(new Set(['here']));
    await endChild(tracer);
    await until('the one who was erased in between', () => answers.at(-1) === 'gone');
  });
});

/** Whether a thread stands at a call that is held. */
function hasStopped(pid: number): boolean {
  const states = globSync(`/proc/${pid}/task/*/stat`).map((path) => readFileSync(path, 'latin1'));
  return states.some((state) => / [tT] /.test(state));
}
