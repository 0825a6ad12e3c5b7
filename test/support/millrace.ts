import { execFile, type ExecFileOptions } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { Io } from '../../src/cli/io.ts';
import { runProgram } from '../../src/cli/program.ts';
import { nameThisProcess } from '../../src/lib/lock-owner.ts';
import { SECRET } from './signed-events.ts';

export const ROOT = join(import.meta.dirname, '../..');
export const SOURCE = join(ROOT, 'src/main.ts');
/** What processes run: the program as `build.ts` has bundled it for this run of the tests, or its source. */
export const MAIN = process.env['MILLRACE_TEST_MAIN'] ?? SOURCE;

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What to run instead of `node` and MAIN. */
  readonly program?: readonly [string, ...string[]];
}

/**
 * The environment of a child: nothing of the machine's own settings for millrace. With the one for memory a receiver need not
 * begin twice.
 */
export function childEnvironment(env: RunOptions['env'] = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('MILLRACE_'));
  return { ...Object.fromEntries(own), NODE_ENV: 'production', MALLOC_MMAP_THRESHOLD_: '262144', ...env };
}

/**
 * Runs one command line to its end, as a user would: `millrace(['status', '--json'])`, inside the test. Never rejects.
 * @param options.cwd for this one command; no other command may run at the same time
 * @param options.signal what a SIGTERM does
 */
export async function millrace(
  args: readonly string[],
  options: Pick<RunOptions, 'cwd' | 'env'> & { readonly signal?: AbortSignal } = {},
): Promise<Ended> {
  const written = { stdout: '', stderr: '' };
  const before = process.cwd();
  if (options.cwd !== undefined) process.chdir(options.cwd);
  const { exited, stop } = runInside(args, options, (name, text) => (written[name] += text));
  if (options.signal?.aborted === true) stop.abort();
  options.signal?.addEventListener('abort', () => stop.abort(), { once: true });
  const code = await exited;
  if (options.cwd !== undefined) process.chdir(before);
  nameThisProcess('millrace');
  return { code, signal: null, ...written };
}

/** A command line that runs inside the test. */
export interface Inside {
  /** Its exit code. Never rejects. */
  readonly exited: Promise<number>;
  /** What a SIGTERM does. */
  readonly stop: AbortController;
  /** What a SIGHUP does. */
  hangUp(): void;
}

export function runInside(
  args: readonly string[],
  { env }: Pick<RunOptions, 'env'>,
  take: (name: 'stdout' | 'stderr', text: string) => void,
): Inside {
  const into = (name: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        take(name, String(chunk));
        done();
      },
    });
  let code = 0;
  let hangUp: (() => void) | null = null;
  const stop = new AbortController();
  const io: Io = {
    stdout: into('stdout'),
    stderr: into('stderr'),
    stdin: Readable.from([]),
    env: childEnvironment(env),
    signal: stop.signal,
    onHangUp: (listener) => (hangUp = listener),
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: (exit) => (code = exit),
  };
  return { exited: runProgram(io, args).then(() => code), stop, hangUp: () => hangUp?.() };
}

/** The same in a process of its own, for tests of what only a process does. Never rejects. */
export function millraceProcess(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const [file, ...before] = options.program ?? [process.execPath, MAIN];
  const settings: ExecFileOptions = { env: childEnvironment(options.env), timeout: 300_000 };
  if (options.cwd !== undefined) settings.cwd = options.cwd;
  return new Promise((resolve) => {
    const child = execFile(file, [...before, ...args], settings, (_error, stdout, stderr) => {
      const { exitCode: code, signalCode: signal } = child;
      resolve({ code, signal, stdout: String(stdout), stderr: String(stderr) });
    });
    child.stdin?.end();
  });
}

/**
 * Writes a config below `folder`: any free ports, journal, archive and erasures beside it, everything to the archive.
 * @param changes replace whole top-level sections, except that `server`, `admin` and `journal` keep what they do not name
 * @returns the config's path
 */
export function writeConfig(folder: string, changes: Readonly<Record<string, unknown>> = {}): string {
  const { server, admin, journal, ...rest } = changes as Record<string, object>;
  const config = {
    server: { host: '127.0.0.1', port: 0, ...server },
    admin: { port: 0, ...admin },
    signing: { secrets: [SECRET] },
    journal: { path: join(folder, 'journal'), ...journal },
    // Its default lies below the current folder, where the users erased by another run would be missing.
    erasure: { path: join(folder, 'erasure') },
    sinks: { archive: { type: 'files', path: join(folder, 'archive') } },
    ...rest,
  };
  const file = join(folder, 'millrace.yaml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config, null, 2));
  return file;
}
