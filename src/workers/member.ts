import type { Worker } from 'node:cluster';
import type { Logger } from 'pino';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { InvalidReason } from '../core/ingest.ts';
import { unpack } from '../journal/rows.ts';
import type { ReceiverLoad, ReceiverOptions } from '../receive/options.ts';
import type { Order, Report, ResultRow, WorkReport } from './protocol.ts';

/** What a worker's deliveries go through in the first process. */
export interface Hooks extends Pick<ReceiverOptions, 'ingest' | 'onOutcome' | 'onError'> {
  readonly log: Pick<Logger, 'warn'>;
}

export interface Listening {
  readonly url: string;
  readonly port: number;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
}

/** One worker, as the first process sees it. */
export class Member<Settings> {
  readonly #worker: Worker;
  readonly #hooks: Hooks;
  readonly #start: () => Order<Settings>;
  readonly #listening = Promise.withResolvers<Listening>();
  readonly #drained = Promise.withResolvers<void>();
  /** One for each `settings` that is not answered, in order. */
  readonly #changing: PromiseWithResolvers<void>[] = [];
  #results: ResultRow[] = [];
  #started = false;
  /** As it last said. */
  load: ReceiverLoad = { inFlight: 0, decompressing: 0, connections: { open: 0, evicted: 0, dropped: 0 } };
  /** Rejects with a MillraceError when it cannot listen or ends before it does. */
  readonly listening = this.#listening.promise;
  readonly ended: Promise<Ending>;

  /** @param start what to start it with, asked for when it is ready to be told */
  constructor(worker: Worker, hooks: Hooks, start: () => Order<Settings>) {
    this.#worker = worker;
    this.#hooks = hooks;
    this.#start = start;
    // Whoever waits is told; nobody has to.
    this.listening.catch(() => undefined);
    this.ended = new Promise((resolve) => {
      const end = (ending: Ending): void => {
        this.#listening.reject(new MillraceError('worker_failed', `ended with ${reasonOf(ending)}`));
        this.#drained.resolve();
        for (const { resolve: done } of this.#changing.splice(0)) done();
        resolve(ending);
      };
      worker.on('exit', (code: number | null, signal: string | null) => end({ code, signal }));
      // It could not be started at all, or not be reached; in both cases it is of no use.
      worker.on('error', () => {
        this.kill();
        if (worker.process.pid === undefined) end({ code: null, signal: null });
      });
    });
    worker.on('message', (report: Report) => this.#read(report));
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  send(order: Order<Settings>): void {
    // An order that it does not get is one that it no longer needs: it is about to end.
    if (this.#worker.isConnected()) this.#worker.send(order, () => undefined);
  }

  /** Resolves when it goes by these settings, or has ended. */
  change(settings: Settings): Promise<void> {
    // One that has not begun will begin with the newest.
    if (!this.#started || this.#worker.isDead()) return Promise.resolve();
    const changed = Promise.withResolvers<void>();
    this.#changing.push(changed);
    this.send({ op: 'settings', settings });
    return changed.promise;
  }

  /** Resolves when none of its deliveries is in flight, or it has ended. */
  drain(): Promise<void> {
    this.#sendOrKill({ op: 'drain' });
    return this.#drained.promise;
  }

  /** Cuts what is connected to it; resolves when it has ended. */
  async close(): Promise<void> {
    this.#sendOrKill({ op: 'close' });
    await this.ended;
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  /** One that does not listen yet has nothing to lose, and must not begin. */
  #sendOrKill(order: Order<Settings>): void {
    if (this.#started) this.send(order);
    else this.kill();
  }

  #read(report: Report): void {
    switch (report.op) {
      case 'ready':
        this.#started = true;
        this.send(this.#start());
        break;
      case 'listening':
        this.#listening.resolve(report);
        break;
      case 'failed':
        this.#listening.reject(new MillraceError(report.code, report.detail));
        break;
      case 'work':
        this.#work(report);
        break;
      case 'settled':
        this.#changing.shift()?.resolve();
        break;
      case 'drained':
        this.#drained.resolve();
        break;
      case 'warning':
        this.#hooks.log.warn({ worker: this.pid, ...report.detail }, report.message);
        break;
      case 'error':
        this.#hooks.onError?.(Object.assign(new Error(report.message), { stack: report.stack }));
        break;
      default:
        report satisfies never;
    }
  }

  #work(report: WorkReport): void {
    this.load = report.load;
    for (const [outcome, info] of report.answered) this.#hooks.onOutcome?.(outcome, info);
    const events = unpack(report);
    for (const [index, event] of events.entries()) {
      const ticket = report.first + index;
      const invalid = report.invalid[index] ?? null;
      const stored =
        invalid === null
          ? this.#hooks.ingest.accept(event, { handling: event.handling })
          : this.#hooks.ingest.quarantine(event, JSON.parse(invalid) as InvalidReason[]);
      stored.then(
        (result) => this.#answer([ticket, result]),
        (error: unknown) => this.#answer(this.#refusal(ticket, error)),
      );
    }
  }

  #refusal(ticket: number, error: unknown): ResultRow {
    if (error instanceof MillraceError) return [ticket, null, error.code, error.detail];
    this.#hooks.onError?.(error);
    return [ticket, null, 'internal', messageOf(error)];
  }

  /** What a commit has made durable is told in one message. */
  #answer(row: ResultRow): void {
    this.#results.push(row);
    if (this.#results.length > 1) return;
    setImmediate(() => {
      this.send({ op: 'results', results: this.#results });
      this.#results = [];
    });
  }
}

export function reasonOf({ code, signal }: Ending): string {
  return signal ?? (code === null ? 'no code' : `code ${code}`);
}
