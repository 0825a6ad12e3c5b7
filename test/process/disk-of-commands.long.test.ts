import { execFileSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ids } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Ended, millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { fillDisk, lacksMount, mountTmpfs } from '../support/mounts.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { firstLack, skipped } from '../support/requirements.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';
import { printing } from '../support/place.ts';

const FILES = 3;
const CONFIG = ['--config', 'millrace.yaml'];
const env = {
  MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  NEW_MASTER_KEY: Buffer.alloc(32, 2).toString('base64'),
};
const COMPACT = ['archive', 'compact', 'archive', '--min-age', '0s', ...CONFIG];
/** What writes, below the folder that it runs in. */
const WRITING = [
  COMPACT,
  ['replay', 'archive', '--to', 'sealed', ...CONFIG],
  ['replay', 'journal', '--to', 'sealed', ...CONFIG],
  ['reconcile', ...CONFIG],
  ['export', 'archive', '--out', 'out'],
  ['export', 'archive', '--out', 'lake', '--format', 'delta'],
  ['load', 'archive', '--to', 'duckdb:db.duckdb'],
  ['erase', 'made-up-user', '--now', ...CONFIG],
  ['keys', 'rotate', '--new-master-key-env', 'NEW_MASTER_KEY', ...CONFIG],
  ['types', 'ts', '--from', 'archive', '--out', 'types.ts'],
  ['init', '--yes', '--folder', 'new'],
  ['serve', ...CONFIG],
];
const READING = [
  ['archive', 'verify', 'archive', ...CONFIG],
  ['keys', 'status', ...CONFIG],
  ['keys', 'public', ...CONFIG],
];

/** A disk of its own with what a receiver has left: a journal, an archive of small files, a sealed one, and their proof. */
async function disk(): Promise<string> {
  const made = await temporaryFolder();
  const paths = { journal: { path: 'journal' }, erasure: { path: 'erasure' } };
  const encrypt = { store: 'keys', masterKey: '${MASTER_KEY}' };
  const sinks = {
    archive: { type: 'files', path: 'archive' },
    sealed: { type: 'files', path: 'sealed', encrypt },
  };
  const config = writeConfig(made, { ...paths, sinks, routes: [{ match: '*', to: ['archive', 'sealed'] }] });
  const receiver = await ReceiverProcess.start(config, { cwd: made, env });
  for (let n = 0; n < FILES; n += 1) {
    await receiver.send(1, n);
    await receiver.drained();
    expect((await millrace(['flush', ...CONFIG], { cwd: made, env })).code).toBe(0);
  }
  await receiver.stop();
  const folder = join(await temporaryFolder(), 'disk');
  onTestFinished(mountTmpfs(folder, '16m'));
  cpSync(made, folder, { recursive: true });
  return folder;
}

function expectOneLine(args: readonly string[], { code, stderr }: Ended, reason: RegExp): void {
  const said = `${args.join(' ')}: ${code}: ${stderr}`;
  expect(said).toMatch(reason);
  expect(said).not.toMatch(/^\s+at /m);
  expect(code, said).toBe(1);
}

const lack = firstLack(lacksMount(), lacksStrace());

test.skipIf(lack !== null)(
  `fault 06: commands on a full, a read-only and a failing disk say so in a line, and a compaction continues afterwards${skipped(lack)}`,
  async () => {
    const cwd = await disk();
    const archive = join(cwd, 'archive');
    const before = (await ids(archive)).toSorted();
    expect(before.length).toBe(FILES);
    const filler = join(cwd, 'filler');
    const reads = async (): Promise<void> => {
      for (const args of READING) expect(await millrace(args, { cwd, env })).toMatchObject({ code: 0 });
    };

    fillDisk(filler);
    for (const args of WRITING)
      expectOneLine(args, await millrace(args, { cwd, env }), /no space left|disk is full/i);
    await reads();
    rmSync(filler);

    execFileSync('mount', ['-o', 'remount,ro', cwd]);
    for (const args of WRITING)
      expectOneLine(args, await millrace(args, { cwd, env }), /read-only|disk I\/O error/i);
    await reads();
    execFileSync('mount', ['-o', 'remount,rw', cwd]);

    const program = underStrace('error=EIO');
    expectOneLine(COMPACT, await millraceProcess(COMPACT, { cwd, env, program }), /EIO/);
    expect((await ids(archive)).toSorted()).toEqual(before);

    const done = await millrace(COMPACT, { cwd, env });
    expect(done).toMatchObject(printing(0, `${FILES} files became 1`));
    expect((await ids(archive)).toSorted()).toEqual(before);
    await reads();
  },
);
