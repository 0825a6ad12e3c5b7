import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { resolveText } from '../../config/load.ts';
import type { LoadedConfig } from '../../config/config.ts';
import { MillraceError } from '../../core/errors.ts';
import { membersIn } from '../../lib/parsed.ts';
import type { Io } from '../io.ts';
import { startChild, unlessInterrupted, type Child } from './child.ts';

/** One `millrace serve` of the fleet. */
export interface Replica extends Pick<Child, 'pid' | 'end'> {
  /** Where events go. */
  readonly url: string;
  readonly archive: string;
  /** What it runs by. */
  readonly loaded: LoadedConfig;
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
  const kept = createWriteStream(join(own, 'log.ndjson'));
  const listening = Promise.withResolvers<string>();
  const child = startChild(process.execPath, run, {
    cwd: own,
    env: Object.fromEntries(others),
    onLine: (line) => {
      kept.write(`${line}\n`);
      const found = urlIn(line);
      if (found !== null) listening.resolve(found);
    },
  });
  void child.ended.then(() => {
    kept.end();
    listening.reject(new MillraceError('receiver_unreachable', `a replica ended: ${child.said()}`));
  });
  const url = await unlessInterrupted(child, signal, listening.promise);
  return { pid: child.pid, url, archive, loaded, end: child.end };
}

function urlIn(line: string): string | null {
  const { msg, url } = membersIn(line);
  return msg === 'listening' && typeof url === 'string' ? url : null;
}
