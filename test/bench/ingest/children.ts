import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RecordOpener } from '../../../src/core/sealed-record.ts';
import type { SystemStatus } from '../../../src/core/operations.ts';
import { bytesToDiskOf, cpuSecondsOf } from '../processes.ts';
import { PATH } from '../rivals/announce.ts';
import type { Kept, Server } from './contestant.ts';
import { countArchive } from './count-archive.ts';
import type { LoadOrder, LoadResult } from './load-child.ts';

const ROUTES = [
  { match: ['labtest.', 'lab_report.'], to: 'archive:lab' },
  { match: ['daily.', 'historical.'], to: 'archive' },
  { match: '*', to: 'archive' },
];

export const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

/** The load generator, as a process. */
export class Load {
  readonly #child = fork(new URL('load-child.ts', import.meta.url));

  /** Makes the requests that the next runs send. @param size bytes of a body */
  async make(count: number, secret: string, size = 1200): Promise<void> {
    await this.#ask({ op: 'make', count, size, secret });
  }

  /** @throws Error when any answer is not a 202 */
  async run(order: Exclude<LoadOrder, { op: 'make' }>): Promise<LoadResult> {
    const result = (await this.#ask(order)) as LoadResult;
    const others = Object.keys(result.statuses).filter((status) => status !== '202');
    if (others.length > 0) throw new Error(`not only 202: ${JSON.stringify(result.statuses)}`);
    return result;
  }

  stop(): Promise<void> {
    return end(this.#child, 'SIGTERM');
  }

  async #ask(order: LoadOrder): Promise<unknown> {
    const ended = new AbortController();
    const answer = once(this.#child, 'message', { signal: ended.signal });
    const exit = once(this.#child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error('the load generator ended');
    });
    this.#child.send(order);
    try {
      const [reply] = (await Promise.race([answer, exit])) as [
        { ok: boolean; result: unknown; error: string },
      ];
      if (!reply.ok) throw new Error(`load: ${reply.error}`);
      return reply.result;
    } finally {
      ended.abort();
      await Promise.allSettled([answer, exit]);
    }
  }
}

export interface ReceiverOptions {
  /** Holds its config, journal and archive. */
  readonly folder: string;
  readonly secret: string;
  /** Further secrets, beside the one that the load is signed with. */
  readonly otherSecrets?: readonly string[];
  /** `server.maxConnections`; the default when left out. */
  readonly maxConnections?: number;
  /** Further options of the files sink. */
  readonly sink?: Readonly<Record<string, unknown>>;
  /** Beside `PATH`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Another program than this tree's. */
  readonly main?: string;
  /** Node writes a CPU profile here when the receiver ends; null takes none. */
  readonly profile: string | null;
  /** Events that are not stay in the journal; they are when left out. */
  readonly routed?: boolean;
  /** Another journal than one in the folder, for a process that only receives. */
  readonly journal?: object;
}

/** The whole receiver, as its operator would start it: `millrace serve`, with a files sink. */
export class ReceiverProcess implements Server {
  readonly #options: ReceiverOptions;
  readonly archive: string;
  #running: Running;

  private constructor(options: ReceiverOptions, running: Running) {
    this.#options = options;
    this.archive = archiveOf(options);
    this.#running = running;
  }

  static async start(options: ReceiverOptions): Promise<ReceiverProcess> {
    return new ReceiverProcess(options, await run(options));
  }

  /** Ends its process in order, and starts another on its folder. */
  async renew(): Promise<void> {
    await end(this.#child, 'SIGTERM');
    this.#running = await run(this.#options);
  }

  get port(): number {
    return this.#running.port;
  }

  get adminUrl(): string {
    return this.#running.adminUrl;
  }

  get #child(): ChildProcess {
    return this.#running.child;
  }

  /** What the admin API asks for. */
  get authorization(): Record<string, string> {
    const owner = readFileSync(join(this.archive, '../journal/owner.json'), 'utf8');
    return { authorization: `Bearer ${(JSON.parse(owner) as { token: string }).token}` };
  }

  get #pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resident memory, MiB. */
  memory(): number {
    const status = readFileSync(`/proc/${this.#pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
  }

  /** CPU time it has taken so far, all of its threads together, seconds. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.#pid);
  }

  bytesToDisk(): number {
    return bytesToDiskOf(this.#pid);
  }

  /** CPU time of the thread that receives, seconds. */
  mainThreadSeconds(): number {
    const pid = this.#pid;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
  }

  async untilDelivered(): Promise<void> {
    await this.untilWaiting(0);
  }

  /** Resolves when no sink has a backlog above this. @returns what is left */
  async untilWaiting(most: number): Promise<number> {
    for (;;) {
      const headers = this.authorization;
      const { journal } = (await (
        await fetch(`${this.adminUrl}/api/status`, { headers })
      ).json()) as SystemStatus;
      if (journal.quarantined !== 0 || journal.deadLetters !== 0)
        throw new Error('events were not delivered');
      const left = Math.max(0, ...journal.cursors.map(({ backlog }) => backlog));
      if (left <= most) return left;
      await wait(20);
    }
  }

  /** Closes the archive's open files. Resolves when they are there under their final names, compressed. */
  async flush(): Promise<void> {
    const headers = { ...this.authorization, 'content-type': 'application/json' };
    const { ok, status } = await fetch(`${this.adminUrl}/api/flush`, { method: 'POST', headers, body: '{}' });
    if (!ok) throw new Error(`a flush was answered ${status}`);
  }

  /** Ends it in order, and counts what is in its archive. */
  async settle(opener?: RecordOpener): Promise<Kept> {
    await end(this.#child, 'SIGTERM');
    return countArchive(this.archive, opener);
  }

  /** For a bench that failed: ends it at once. */
  async kill(): Promise<void> {
    await end(this.#child, 'SIGKILL');
  }
}

interface Running {
  readonly child: ChildProcess;
  readonly port: number;
  readonly adminUrl: string;
}

async function run(options: ReceiverOptions): Promise<Running> {
  const {
    folder,
    secret,
    otherSecrets = [],
    maxConnections = 10_000,
    profile,
    routed = true,
    sink = {},
    env = {},
    main = MAIN,
    journal,
  } = options;
  const archive = archiveOf(options);
  const config = join(folder, 'millrace.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      server: { host: '127.0.0.1', port: 0, path: PATH, maxConnections },
      admin: { port: 0 },
      // Requests are signed before they are timed, and a run on a slow machine may take long.
      signing: { secrets: [secret, ...otherSecrets], tolerance: '1h' },
      journal: journal ?? { path: join(folder, 'journal') },
      sinks: { archive: { type: 'files', path: archive, ...sink } },
      routes: routed ? ROUTES : [{ match: '*', to: [] }],
      shutdown: { deadline: '300s' },
    }),
  );
  const flags = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const role = journal === undefined ? [] : ['--role', 'receive'];
  const child = spawn(process.execPath, [...flags, main, 'serve', '--config', config, ...role], {
    stdio: ['ignore', 'inherit', 'pipe'],
    env: { PATH: process.env['PATH'], ...env },
    cwd: folder,
  });
  const lines = createInterface({ input: child.stderr });
  const listening = Promise.withResolvers<{ url: string; admin: string }>();
  lines.on('line', (line) => {
    if (line.includes('"msg":"listening"'))
      listening.resolve(JSON.parse(line) as { url: string; admin: string });
    else if (!line.startsWith('{"level":30')) process.stderr.write(`receiver: ${line}\n`);
  });
  child.once('exit', (code) => listening.reject(new Error(`the receiver ended with ${code}`)));
  const { url, admin } = await listening.promise;
  return { child, port: Number(new URL(url).port), adminUrl: admin };
}

function archiveOf({ folder }: ReceiverOptions): string {
  return join(folder, 'archive');
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}
