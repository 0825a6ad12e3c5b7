import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { KeyStore } from '../../src/seal/key-store.ts';
import { mealIds, rowIds } from '../backfill/support.ts';
import { writeArchive } from '../replay/made-up-archive.ts';
import { keysOf, MASTER, MASTER_TEXT, owner } from '../seal/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import {
  childEnvironment,
  MAIN,
  millrace,
  millraceProcess,
  writeConfig,
  type Ended,
} from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { until } from '../support/until.ts';

const USERS = 30;
const RANGE = ['--since', '2026-01-01', '--until', '2026-01-10'];

/** One command line, twice, and where it says who holds its lock. */
interface Case {
  readonly args: readonly string[];
  readonly lock: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Held open: the command reads on. */
  readonly input?: string;
  /** Exit codes of one that comes after a killed one. A comparison that finds something, or an archive without a manifest, ends with 4. */
  readonly ends?: readonly number[];
}

async function service(): Promise<{ sandbox: Sandbox; env: Record<string, string> }> {
  const sandbox = await startSandbox({ users: USERS, days: 10, mealsPerDay: 2, speed: 1000 });
  onTestFinished(() => sandbox.stop());
  return {
    sandbox,
    env: { MILLRACE_SERVICE_BASE_URL: sandbox.url, MILLRACE_SERVICE_API_KEY: sandbox.apiKey },
  };
}

const inFolder = (folder: string): string => join(folder, '.millrace-lock');

const CASES: Readonly<Record<string, (folder: string) => Case | Promise<Case>>> = {
  backfill: async (folder) => {
    const { env } = await service();
    const out = join(folder, 'out');
    const command = ['backfill', '--out', out, '--all-users', '--concurrency', '1', ...RANGE];
    return { args: command, lock: inFolder(out), env };
  },
  pull: async (folder) => {
    const { env } = await service();
    const out = join(folder, 'out');
    return { args: ['pull', 'markers', '--out', out], lock: inFolder(out), env };
  },
  'reconcile --fill': async (folder) => {
    const { sandbox, env } = await service();
    const users = sandbox.state.users.list(sandbox.teamId).map(({ id }) => ['--user', id]);
    const out = join(folder, 'out');
    const about = ['--config', writeConfig(folder), '--since', '2026-01-01', '--until', '2026-01-10'];
    return {
      args: ['reconcile', '--service', '--fill', out, ...about, ...users.flat()],
      lock: inFolder(out),
      env,
    };
  },
  export: (folder) => {
    writeArchive(join(folder, 'archive'), { files: 20, each: 500 });
    const out = join(folder, 'out');
    return { args: ['export', join(folder, 'archive'), '--out', out], lock: inFolder(out) };
  },
  replay: (folder) => {
    writeArchive(join(folder, 'source'), { files: 1, each: 40 });
    const state = join(folder, 'state');
    const args = ['replay', join(folder, 'source'), '--to', 'archive', '--rate', '40/s', '--state', state];
    const config = ['--config', writeConfig(folder)];
    return { args: [...args, ...config], lock: inFolder(state) };
  },
  ndjson: (folder) => {
    const out = join(folder, 'out');
    return {
      args: ['ndjson', '-', '--table', 'meals', '--out', out],
      lock: inFolder(out),
      input: '{"meals":[',
      // Then it is given nothing, of which it makes no tables.
      ends: [1],
    };
  },
  'archive verify': (folder) => {
    const archive = join(folder, 'archive');
    writeArchive(archive, { files: 20, each: 500 });
    mkdirSync(join(archive, '_open'));
    return { args: ['archive', 'verify', archive, '--repair'], lock: join(archive, '_open/repair.lock') };
  },
  'keys rotate': async (folder) => {
    const keys = join(folder, 'keys');
    const store = await KeyStore.open(keys, MASTER);
    // As many as take a while to be wrapped anew.
    await keysOf(
      store,
      Array.from({ length: 10_000 }, (_, n) => owner(n)),
    );
    await store.close();
    const env = { MADE_UP_KEY: MASTER_TEXT };
    const names = ['--master-key-env', 'MADE_UP_KEY', '--new-master-key-env', 'MADE_UP_KEY'];
    return { args: ['keys', 'rotate', '--keys', keys, ...names], lock: join(keys, 'lock'), env };
  },
};

/** Starts it and stops it in its tracks as soon as it holds its lock. */
async function stoppedWithLock({
  args,
  lock,
  env,
  input,
}: Case): Promise<{ pid: number; kill: () => Promise<void> }> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: childEnvironment(env),
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  child.stdin.on('error', () => undefined);
  if (input !== undefined) child.stdin.write(input);
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  onTestFinished(kill);
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (existsSync(`${lock}-owner`) && child.kill('SIGSTOP')) resolve();
      else if (child.exitCode !== null) reject(new Error(`it ended with ${child.exitCode}: ${said}`));
      else setTimeout(look, 1);
    };
    look();
  });
  return { pid: child.pid ?? 0, kill };
}

describe('two of one command in one folder: the second exits 2 and names the first, and a killed one holds nothing', () => {
  test.each(Object.keys(CASES))('%s', async (name) => {
    const about = await CASES[name]!(await temporaryFolder());
    const options = { env: about.env ?? {} };
    const first = await stoppedWithLock(about);
    const second = await millrace(about.args, options);
    expect([second.code, second.stdout, second.stderr]).toEqual([
      2,
      '',
      expect.stringContaining(`${name.split(' --')[0]} (process ${first.pid})`),
    ]);
    await first.kill();
    let third = await millrace(about.args, options);
    // Some had begun already.
    if (third.stderr.includes('add --resume')) third = await millrace([...about.args, '--resume'], options);
    expect(third.stderr).not.toContain('(process');
    expect(about.ends ?? [0, 3, 4]).toContain(third.code);
  });
});

describe('what one command holds, another one is refused too', () => {
  test('a pull into the folder of a backfill that runs', async () => {
    const folder = await temporaryFolder();
    const about = await CASES['backfill']!(folder);
    const first = await stoppedWithLock(about);
    const second = await millrace(['pull', 'markers', '--out', join(folder, 'out')], {
      env: about.env ?? {},
    });
    expect([second.code, second.stderr]).toEqual([
      2,
      expect.stringContaining(`backfill (process ${first.pid})`),
    ]);
  });

  test('a repair of the archive that a receiver writes; reading it is free', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder);
    const receiver = await ReceiverProcess.start(config);
    const archive = join(folder, 'archive');
    const repair = await millrace(['archive', 'verify', archive, '--repair']);
    expect([repair.code, repair.stderr]).toEqual([
      2,
      expect.stringContaining(`serve (process ${receiver.pid})`),
    ]);
    const out = join(folder, 'out');
    expect((await millrace(['export', archive, '--out', out])).code).toBe(0);
    const state = join(folder, 'state');
    const replay = ['replay', archive, '--to', 'archive', '--config', config, '--state', state];
    expect((await millrace(replay)).code).toBe(0);
  });
});

test('four backfills started at the same moment leave the rows of one', async () => {
  const { sandbox, env } = await service();
  const out = await temporaryFolder();
  const run = (): Promise<Ended> =>
    millraceProcess(['backfill', '--out', out, '--all-users', '--json', ...RANGE], { env });
  const ended = await Promise.all([run(), run(), run(), run()]);
  expect(ended.map(({ code }) => code).filter((code) => code !== 2)).toContain(0);
  for (const { code, stderr } of ended) {
    expect([0, 2]).toContain(code);
    if (code === 2) expect(stderr).toMatch(/is being written by backfill \(process \d+\)/);
  }
  const ids = await mealIds(sandbox, { since: '2026-01-01', until: '2026-01-10' });
  expect(rowIds(join(out, 'meals.ndjson'))).toEqual(ids);
  expect(readdirSync(out).filter((name) => name.startsWith('.'))).toEqual([]);
});

test('a name that a kill -9 left is no lock, whoever has its number by now', async () => {
  const folder = await temporaryFolder();
  const name = { command: 'backfill', pid: process.pid, host: 'made-up' };
  writeFileSync(join(folder, '.millrace-lock-owner'), JSON.stringify(name));
  const { env } = await service();
  expect((await millrace(['pull', 'markers', '--out', folder], { env })).code).toBe(0);
  expect(
    await until('the names to go', () => readdirSync(folder).every((entry) => !entry.startsWith('.'))),
  ).toBe(true);
});
