import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { detailOf, MillraceError, messageOf } from '../../core/errors.ts';
import { parseTarget } from '../../core/route.ts';
import type { SinkDescription } from '../../core/sink.ts';
import { onAbort } from '../../lib/abort.ts';
import { exitOf, lastLineOf, ownCommand, reasonIn } from '../../lib/own-command.ts';
import { jsonIn } from '../../lib/parsed.ts';
import type { ReplayOrder, ReplayOrders } from './replay-orders.ts';

/** Counts of a dry run, or of a replay. */
const countsSchema = z.object({
  read: z.number(),
  selected: z.number(),
  nowhere: z.number(),
  refused: z.number(),
  erased: z.number(),
  problems: z.number(),
  types: z.record(z.string(), z.number()),
  targets: z.record(z.string(), z.number()),
  /** Nothing is left to resume; absent in a dry run. */
  complete: z.boolean().optional(),
});

export type ReplayCounts = z.output<typeof countsSchema>;

/**
 * Modes: counting → counted | failed; counted or interrupted → running → done | failed | interrupted. A failed or interrupted
 * replay continues when it is started again.
 */
export interface ReplayJob {
  readonly id: string;
  /** Null when its file cannot be read. */
  readonly order: ReplayOrder | null;
  readonly state: 'counting' | 'counted' | 'running' | 'done' | 'failed' | 'interrupted';
  /** Events may have been sent. */
  readonly isBegun: boolean;
  /** Counts of the dry run; null before. */
  readonly preview: ReplayCounts | null;
  /** Counts at the end; null before. */
  readonly result: ReplayCounts | null;
  /** Why it has failed, or what is left to do. */
  readonly detail: string | null;
}

export interface ReplaysOptions {
  /** The config file for `millrace replay`. */
  readonly config: string;
  readonly orders: ReplayOrders;
  /** Whether a replay has noted that it finished. */
  readonly hasFinished: (id: string) => boolean;
  /** Sinks of the current config. */
  readonly sinks: () => ReadonlyMap<string, Pick<SinkDescription, 'archive' | 'writesStdout'>>;
}

const MOST_RUNNING = 2;
/** Jobs that are remembered. */
const MOST_JOBS = 20;

type Change = Partial<Omit<ReplayJob, 'id' | 'order'>>;

/** Replays that the console starts. Each is a `millrace replay` process; unfinished ones are on disk. */
export class Replays {
  readonly #options: ReplaysOptions;
  readonly #jobs = new Map<string, ReplayJob>();
  readonly #children = new Map<string, { readonly process: ChildProcess; readonly ended: Promise<void> }>();
  #isLoaded = false;
  #isStopped = false;

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** Newest first. @throws MillraceError folder_unwritable when unfinished ones cannot be read */
  list(): readonly ReplayJob[] {
    this.#load();
    return [...this.#jobs.values()].toReversed();
  }

  /** Sources and targets that the console offers. */
  choices(): { readonly from: readonly string[]; readonly to: readonly string[] } {
    const sinks = [...this.#options.sinks()];
    const archives = sinks.flatMap(([name, { archive }]) => (archive === undefined ? [] : [name]));
    // Another process cannot write to this stdout.
    const to = sinks.flatMap(([name, { writesStdout }]) => (writesStdout === true ? [] : [name]));
    return { from: ['journal', ...archives], to };
  }

  get(id: string): ReplayJob {
    this.#load();
    const job = this.#jobs.get(id);
    if (job === undefined) throw new MillraceError('usage', `there is no replay ${id}`);
    return job;
  }

  /** Starts a dry run. @throws MillraceError usage */
  count(order: ReplayOrder): ReplayJob {
    const args = this.#argsOf(order, ['--dry-run']);
    this.#mustHaveRoom();
    this.#load();
    const id = `console-${randomBytes(9).toString('base64url')}`;
    const nothing = { isBegun: false, preview: null, result: null, detail: null };
    this.#jobs.set(id, { id, order, state: 'counting', ...nothing });
    this.#run(id, args, ({ code, counts, detail }) =>
      counts === null || (code !== 0 && code !== 3)
        ? { state: 'failed', detail }
        : { state: 'counted', preview: counts, detail: null },
    );
    this.#forgetOld();
    return this.get(id);
  }

  /** @throws MillraceError usage when it is running, not counted, or done, or its order cannot be read */
  mayStart(id: string): ReplayOrder {
    const { order, state, preview, isBegun, detail } = this.get(id);
    if (order === null) throw new MillraceError('usage', detail ?? id);
    if (state === 'running' || state === 'counting') throw new MillraceError('usage', `${id} is running`);
    if (preview === null && !isBegun) throw new MillraceError('usage', `${id} was not counted`);
    if (state === 'done') throw new MillraceError('usage', `${id} is done`);
    this.#mustHaveRoom();
    return order;
  }

  /** Starts or continues a replay. @throws MillraceError usage */
  async start(id: string): Promise<ReplayJob> {
    const order = this.mayStart(id);
    const { isBegun } = this.get(id);
    const { orders } = this.#options;
    if (isBegun && this.#noteIfOver(id)) return this.get(id);
    const state = orders.stateOf(id);
    this.#change(id, { state: 'running', isBegun: true, result: null, detail: null });
    let args: string[];
    try {
      const resume = existsSync(join(state, 'plan.json')) ? ['--resume'] : [];
      args = this.#argsOf(order, ['--id', id, '--state', state, ...resume]);
      mkdirSync(state, { recursive: true, mode: 0o700 });
      if (!isBegun) await orders.write(id, order);
    } catch (error) {
      this.#change(id, { state: 'failed', isBegun, detail: messageOf(error) });
      throw error;
    }
    this.#run(id, args, ({ code, counts, detail }) => {
      if (code === 3 && counts?.complete === false)
        return { state: 'interrupted', result: counts, detail: 'stopped; it continues where it was' };
      if (code !== 0 && code !== 3) return { state: code === null ? 'interrupted' : 'failed', detail };
      orders.remove(id);
      return { state: 'done', result: counts, detail: code === 0 ? null : leftOf(counts, state) };
    });
    return this.get(id);
  }

  /** Interrupts a replay in an orderly way. */
  stop(id: string): ReplayJob {
    this.get(id);
    this.#children.get(id)?.process.kill('SIGTERM');
    return this.get(id);
  }

  /** Removes a replay with its state; sent events stay sent. @throws MillraceError usage while it is running */
  forget(id: string): void {
    this.get(id);
    if (this.#children.has(id)) throw new MillraceError('usage', `${id} is running; stop it first`);
    this.#options.orders.remove(id);
    this.#options.orders.removeState(id);
    this.#jobs.delete(id);
  }

  /** Interrupts all replays. @param signal kills them when it aborts */
  async close(signal: AbortSignal): Promise<void> {
    this.#isStopped = true;
    const children = [...this.#children.values()];
    for (const { process } of children) process.kill('SIGTERM');
    const forget = onAbort(signal, () => {
      for (const { process } of children) process.kill('SIGKILL');
    });
    await Promise.all(children.map(({ ended }) => ended));
    forget();
  }

  #argsOf(order: ReplayOrder, more: readonly string[]): string[] {
    const { from, to, types, since, until } = order;
    const sinks = this.#options.sinks();
    const input = from === 'journal' ? 'journal' : sinks.get(from)?.archive;
    if (input === undefined) throw new MillraceError('usage', `${from} has no archive to replay from`);
    const target = to === null ? null : parseTarget(to).sink;
    const { to: able } = this.choices();
    if (target !== null && !able.includes(target))
      throw new MillraceError('usage', `${target} is no sink that a replay can send to: ${able.join(', ')}`);
    const others = able.length === sinks.size ? [] : able.map((name) => `--sink=${name}`);
    return [
      `--config=${this.#options.config}`,
      '--json',
      ...(to === null ? ['--routes', ...others] : [`--to=${to}`]),
      ...types.map((type) => `--type=${type}`),
      ...(since === undefined ? [] : [`--since=${since}`]),
      ...(until === undefined ? [] : [`--until=${until}`]),
      ...more,
      // A path can begin with a dash.
      '--',
      input,
    ];
  }

  #mustHaveRoom(): void {
    if (this.#isStopped) throw new MillraceError('usage', 'the receiver is stopping');
    if (this.#children.size >= MOST_RUNNING)
      throw new MillraceError('usage', `${MOST_RUNNING} are running; wait until one has ended`);
  }

  #run(id: string, args: readonly string[], then: (ended: Ended) => Change): void {
    const child = ownCommand(['replay', ...args]);
    const ended = endOf(child).then((end) => {
      this.#children.delete(id);
      this.#change(id, then(end));
    });
    this.#children.set(id, { process: child, ended });
  }

  /** Adds the unfinished replays of earlier receivers, once. */
  #load(): void {
    if (this.#isLoaded) return;
    const { orders } = this.#options;
    for (const id of orders.ids()) {
      const job = { id, preview: null, result: null };
      try {
        const begun = { ...job, order: orders.read(id), isBegun: true };
        this.#jobs.set(id, { ...begun, state: 'interrupted', detail: 'the receiver ended before it did' });
        this.#noteIfOver(id);
      } catch (error) {
        const detail = detailOf(error);
        this.#jobs.set(id, { ...job, order: null, isBegun: false, state: 'failed', detail });
      }
    }
    this.#isLoaded = true;
  }

  /** A replay that outlived the receiver may be done: then it has noted that, and removed its state folder. */
  #noteIfOver(id: string): boolean {
    const { orders, hasFinished } = this.#options;
    const state = orders.stateOf(id);
    if (existsSync(state)) return false;
    if (hasFinished(id)) {
      orders.remove(id);
      this.#change(id, { state: 'done', detail: 'it was done after the receiver had ended' });
    } else {
      const detail = `${state} is missing, so it is unknown what was sent: put it back, or forget this replay`;
      this.#change(id, { state: 'failed', detail });
    }
    return true;
  }

  #change(id: string, change: Change): void {
    const job = this.#jobs.get(id);
    if (job !== undefined) this.#jobs.set(id, { ...job, ...change });
  }

  #forgetOld(): void {
    for (const { id, order, isBegun, state } of this.#jobs.values()) {
      if (this.#jobs.size <= MOST_JOBS) return;
      const isOnDisk = order === null || (isBegun && state !== 'done');
      if (!this.#children.has(id) && !isOnDisk) this.#jobs.delete(id);
    }
  }
}

type Ended = Awaited<ReturnType<typeof endOf>>;

async function endOf(child: ChildProcess) {
  const [out, err] = [lastLineOf(child.stdout), lastLineOf(child.stderr)];
  const code = await exitOf(child);
  const counts = countsSchema.safeParse(jsonIn(await out)).data ?? null;
  return { code, counts, detail: reasonIn(await err) };
}

function leftOf(counts: ReplayCounts | null, state: string): string {
  const { refused = 0, problems = 0 } = counts ?? {};
  const named = refused === 0 ? '' : `; ${join(state, 'refused.ndjson')} names them`;
  return `done, except for ${refused} refused and ${problems} that could not be read${named}`;
}
