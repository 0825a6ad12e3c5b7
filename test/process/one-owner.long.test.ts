import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { KeyStore } from '../../src/privacy/seal/key-store.ts';
import { writeArchive } from '../replay/made-up-archive.ts';
import { keysOf, MASTER, MASTER_TEXT, owner } from '../privacy/seal/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { CommandProcess } from '../support/command-process.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Place, saying } from '../support/place.ts';

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
    const about = ['--config', writeConfig(folder), ...RANGE, ...users.flat()];
    return { args: ['reconcile', '--service', '--fill', out, ...about], lock: inFolder(out), env };
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
    // As many as take a while to be wrapped again.
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
  env = {},
  input,
}: Case): Promise<{ pid: number; kill: () => unknown }> {
  const command = new CommandProcess(args, { env, stdio: ['pipe', 'ignore', 'pipe'] });
  const { child } = command;
  child.stdin?.on('error', () => undefined);
  if (input !== undefined) child.stdin?.write(input);
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (existsSync(`${lock}-owner`) && child.kill('SIGSTOP')) resolve();
      else if (child.exitCode !== null)
        reject(new Error(`it ended with ${child.exitCode}: ${command.stderr}`));
      else setTimeout(look, 1);
    };
    look();
  });
  return { pid: child.pid ?? 0, kill: () => command.kill('SIGKILL') };
}

describe('two of one command in one folder: the second exits 2 and names the first, and a killed one holds nothing', () => {
  test.each(Object.keys(CASES))('%s', async (name) => {
    const about = await CASES[name]!(await temporaryFolder());
    const options = { env: about.env ?? {} };
    const first = await stoppedWithLock(about);
    const holder = `${name.split(' --')[0]} (process ${first.pid})`;
    expect(await millrace(about.args, options)).toMatchObject({ ...saying(2, holder), stdout: '' });
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
    const pull = ['pull', 'markers', '--out', join(folder, 'out')];
    expect(await millrace(pull, { env: about.env ?? {} })).toMatchObject(
      saying(2, `backfill (process ${first.pid})`),
    );
  });

  test('a repair of the archive that a receiver writes; reading it is free', async () => {
    const place = await Place.make();
    const { pid } = await place.startProcess();
    const archive = place.at('archive');
    const repair = await millrace(['archive', 'verify', archive, '--repair']);
    expect(repair).toMatchObject(saying(2, `serve (process ${pid})`));
    expect((await millrace(['export', archive, '--out', place.at('out')])).code).toBe(0);
    await place.ok('replay', archive, '--to', 'archive', '--state', place.at('state'));
  });
});
