import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { readArchive } from '../../../src/archive/read.ts';
import type { RecordOpener } from '../../../src/core/sealed-record.ts';
import { endChild } from '../../support/child-server.ts';
import { MAIN, writeConfig } from '../../support/millrace.ts';
import { ServeProcess } from '../../support/serve-process.ts';
import type { BenchContext } from '../bench.ts';
import { PATH } from '../rivals/vf.ts';
import type { Kept, Server } from './contestant.ts';
import type { LoadOrder, LoadResult } from './load-child.ts';

const ROUTES = [
  { match: ['labtest.', 'lab_report.'], to: 'archive:lab' },
  { match: ['daily.', 'historical.'], to: 'archive' },
  { match: '*', to: 'archive' },
];
/** Those of a receiver whose events stay in the journal. */
export const NOWHERE = { routes: [{ match: '*', to: [] }] };

/** The load generator, as a process. */
export class Load {
  readonly #child = fork(new URL('load-child.ts', import.meta.url));

  constructor({ atEnd }: Pick<BenchContext, 'atEnd'>) {
    atEnd(() => endChild(this.#child, 'SIGTERM'));
  }

  /** Makes the requests that the next runs send. @param size bytes of a body */
  async make(count: number, size = 1200): Promise<void> {
    await this.#ask({ op: 'make', count, size });
  }

  /** @throws Error when any answer has another status than `accepted` */
  async run(order: Exclude<LoadOrder, { op: 'make' }>, accepted = '202'): Promise<LoadResult> {
    const result = (await this.#ask(order)) as LoadResult;
    const others = Object.keys(result.statuses).filter((status) => status !== accepted);
    if (others.length > 0) throw new Error(`not only ${accepted}: ${JSON.stringify(result.statuses)}`);
    return result;
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
  /** Replaces whole sections of the config, except that `server` and `journal` keep what they do not name. */
  readonly config?: Readonly<Record<string, object>>;
  readonly env?: Readonly<Record<string, string>>;
  /** More of the command line. */
  readonly args?: readonly string[];
  /** Another program than this tree's; empty for that. */
  readonly main?: string;
  /** Node writes a CPU profile here when the receiver ends; empty for none. */
  readonly profile?: string;
}

/** The whole receiver, as its operator would start it: `millrace serve`, with a files sink. */
export class ReceiverProcess extends ServeProcess implements Server {
  readonly accepted = '202';
  readonly #folder: string;

  private constructor(folder: string, { config, env, args, main, profile }: ReceiverOptions) {
    const flags = profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : [];
    const file = writeConfig(folder, {
      server: { path: PATH, maxConnections: 10_000, ...config?.['server'] },
      routes: ROUTES,
      shutdown: { deadline: '300s' },
      ...config,
    });
    super(file, {
      cwd: folder,
      // Requests are signed before they are timed, and a run on a slow machine may take long.
      env: { MILLRACE_SIGNING_TOLERANCE: '1h', ...env },
      program: [process.execPath, ...flags, main || MAIN],
      args: args ?? [],
    });
    this.#folder = folder;
  }

  /** @param folder holds its config, journal and archive; made where it is not there */
  static async start(folder: string, options: ReceiverOptions = {}): Promise<ReceiverProcess> {
    mkdirSync(folder, { recursive: true });
    const receiver = new ReceiverProcess(folder, options);
    await receiver.listening();
    return receiver;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async untilDelivered(): Promise<void> {
    await this.untilWaiting(0);
  }

  /** Resolves when no sink has a backlog above this. @returns what is left */
  async untilWaiting(most: number): Promise<number> {
    for (;;) {
      const { journal } = await this.status();
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

  async end(): Promise<void> {
    this.signal('SIGTERM');
    await this.exited;
  }

  /** @param opener of sealed records */
  async kept(opener?: RecordOpener): Promise<Kept> {
    const ids = new Set<string>();
    let records = 0;
    for await (const item of readArchive(join(this.#folder, 'archive'), { opener })) {
      if (item.kind !== 'record') throw new Error(`${item.file}: ${item.reason}`);
      records += 1;
      ids.add(item.record.id);
    }
    return { records, ids: ids.size };
  }
}
