import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { resolveText } from '../../config/load.ts';
import type { LoadedConfig } from '../../config/config.ts';
import { MillraceError } from '../../core/errors.ts';
import { isRecord } from '../../lib/is-record.ts';
import type { Io } from '../io.ts';

/** One `millrace serve` of the fleet. */
export interface Replica {
  readonly name: string;
  readonly pid: number;
  /** Where events go. */
  readonly url: string;
  readonly archive: string;
  /** What it runs by. */
  readonly loaded: LoadedConfig;
  /** Sends the signal and waits for the end. @returns the exit code; null when a signal ended it */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>;
}

/** After so long without its partitions' owner the others have them; brokers take no less by default. */
const SESSION = '6s';
const SHUTDOWN = '30s';

/** Starts one as a process of its own, and waits until it listens. Its log is kept beside its archive. */
export async function startReplica(
  folder: string,
  name: string,
  journal: { readonly brokers: readonly string[]; readonly name: string },
  secret: string,
  { env, signal }: Pick<Io, 'env' | 'signal'>,
): Promise<Replica> {
  const own = join(folder, name);
  const archive = join(own, 'archive');
  await mkdir(own);
  const text = JSON.stringify({
    server: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    signing: { secrets: [secret] },
    shutdown: { deadline: SHUTDOWN },
    journal: {
      type: 'kafka',
      brokers: journal.brokers,
      tls: { enabled: false },
      topic: `${journal.name}.events`,
      windowTopic: `${journal.name}.window`,
      quarantineTopic: `${journal.name}.quarantine`,
      deadLetterTopic: `${journal.name}.dead-letters`,
      group: journal.name,
      session: SESSION,
    },
    erasure: { path: join(own, 'erasure') },
    sinks: { archive: { type: 'files', path: archive } },
    routes: [{ match: '*', to: ['archive'] }],
  });
  const file = join(own, 'millrace.yaml');
  await writeFile(file, text, { mode: 0o600 });
  // No environment: a demo must not pick up what is meant for production.
  const loaded = await resolveText(text, { file, env: {} });
  const others = Object.entries(env).filter(([key]) => !/^(?:MILLRACE|OTEL)_/.test(key));
  const run = [...process.execArgv, resolve(process.argv[1] ?? ''), 'serve', '--config', file];
  const child = spawn(process.execPath, run, {
    cwd: own,
    env: Object.fromEntries(others),
    stdio: ['ignore', 'ignore', 'pipe'],
    // In a group of its own: Ctrl-C ends the demo, which ends it in its turn.
    detached: true,
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const closed = new Promise<number | null>((done) => {
    child.once('close', done);
    child.once('error', () => done(null));
  });
  void closed.then(() => process.off('exit', kill));
  signal.addEventListener('abort', kill, { once: true });
  const url = await listening(child, join(own, 'log.ndjson'));
  signal.removeEventListener('abort', kill);
  if (signal.aborted) throw new MillraceError('interrupted', 'nothing is kept of an unfinished demo');
  const end = (how: 'SIGKILL' | 'SIGTERM'): Promise<number | null> => {
    child.kill(how);
    return closed;
  };
  return { name, pid: child.pid ?? 0, url, archive, loaded, end };
}

/** The URL that its log names. @throws when it ends instead */
async function listening(child: ChildProcess, log: string): Promise<string> {
  const { promise, resolve: found, reject } = Promise.withResolvers<string>();
  if (child.stderr === null) throw new Error('without its log nobody knows where it listens');
  const kept = createWriteStream(log);
  const lines = createInterface({ input: child.stderr });
  let last = '';
  lines.on('line', (line) => {
    kept.write(`${line}\n`);
    last = line;
    const url = urlIn(line);
    if (url !== null) found(url);
  });
  lines.once('close', () => {
    kept.end();
    reject(new MillraceError('receiver_unreachable', `a replica ended: ${last}`));
  });
  child.once('error', reject);
  return promise;
}

function urlIn(line: string): string | null {
  try {
    const said: unknown = JSON.parse(line);
    return isRecord(said) && said['msg'] === 'listening' && typeof said['url'] === 'string'
      ? said['url']
      : null;
  } catch {
    return null;
  }
}
