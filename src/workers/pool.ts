import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Clock } from '../core/clock.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import { untilAborted } from '../lib/abort.ts';
import type { ConnectionCounts } from '../core/operations.ts';
import type { Admission } from '../receive/stages.ts';
import type { Receiver, ReceiverState } from '../receive/options.ts';
import { type Hooks, type Listening, Member, reasonOf } from './member.ts';
import { WORKER } from './protocol.ts';

export interface PoolOptions<Settings> extends Hooks {
  readonly workers: number;
  /** 0 takes any free port, the same for all. */
  readonly port: number;
  /** Each worker has a socket of its own, instead of the one that this process shares out. */
  readonly reusePort: boolean;
  readonly settings: Settings;
  /** Asked often; the workers are told when the answer changes. */
  readonly admission: () => Admission;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How often admission is looked at, milliseconds. */
const ADMISSION_EVERY = 50;
/** A worker that lived for less than this is followed by the next one only after a wait, milliseconds. */
const LIVED = 10_000;
const FIRST_WAIT = 100;
const LONGEST_WAIT = 30_000;
/** A worker that does not take new settings, or does not end, within this is killed, milliseconds. */
const PATIENCE = 5000;

/**
 * Several processes that receive on one port, verify and validate; what they accept is stored here, by the one process
 * that has the journal. A worker answers a sender only when it has been told that the event is durable, so killing one
 * loses nothing that was acknowledged; another is started in its place. Workers end with this process.
 *
 * idle ──listen──▶ listening ──drain──▶ draining ──close──▶ closed, as for the receiver in one process.
 */
export class WorkerPool<Settings> implements Omit<Receiver, 'replace'> {
  readonly #options: PoolOptions<Settings>;
  readonly #members = new Set<Member<Settings>>();
  #settings: Settings;
  #port: number;
  /** The one that was got; the same as `#port` unless that is 0. */
  #portInUse = 0;
  #admission: Admission = { ok: true };
  #state: ReceiverState = 'idle';
  /** What workers that have ended had counted. */
  readonly #past = { evicted: 0, dropped: 0 };
  /** How many workers in a row have ended soon after their start. */
  #shortLived = 0;
  #stopLooking: () => void = () => {};

  /** @throws MillraceError `config_invalid` where this process cannot have workers */
  constructor(options: PoolOptions<Settings>) {
    // As under a process manager that runs its programs in a cluster of its own.
    if (!cluster.isPrimary)
      throw new MillraceError('config_invalid', 'server.workers: must be 1 in a worker process');
    this.#options = options;
    this.#settings = options.settings;
    this.#port = options.port;
    // Each accepts from the one socket by itself. Handed out in turn, a connection that is on its way to a worker that is
    // killed just then stays open in this process, and its sender waits for nothing.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({
      exec: fileURLToPath(
        new URL(import.meta.url.endsWith('.ts') ? '../main.ts' : '../main.js', import.meta.url),
      ),
      args: [WORKER],
      // JSON would make a body four times as long.
      serialization: 'advanced',
    });
  }

  get state(): ReceiverState {
    return this.#state;
  }

  get ready(): boolean {
    return this.#state === 'listening' && this.#members.size > 0;
  }

  get inFlight(): number {
    return this.#sum(({ load }) => load.inFlight);
  }

  get decompressing(): number {
    return this.#sum(({ load }) => load.decompressing);
  }

  get connections(): ConnectionCounts {
    return {
      open: this.#sum(({ load }) => load.connections.open),
      evicted: this.#past.evicted + this.#sum(({ load }) => load.connections.evicted),
      dropped: this.#past.dropped + this.#sum(({ load }) => load.connections.dropped),
    };
  }

  /** @throws MillraceError `address_unavailable`; `worker_failed` when one ends before it listens. No worker is left then. */
  async listen(): Promise<Listening> {
    return this.#start().catch(async (error: unknown) => {
      await this.close();
      throw error;
    });
  }

  async #start(): Promise<Listening> {
    this.#lookAtAdmission();
    // The first one alone: an address that cannot be had is then said once.
    const first = await this.#fork().listening;
    this.#portInUse = first.port;
    if (this.#options.reusePort) this.#port = first.port;
    const others = Array.from({ length: this.#options.workers - 1 }, () => this.#fork().listening);
    await Promise.all(others);
    this.#state = 'listening';
    while (this.#members.size < this.#options.workers) this.#replace();
    return first;
  }

  /** Resolves when every worker goes by these settings, and so will those to come. */
  async change(settings: Settings): Promise<void> {
    this.#settings = settings;
    await Promise.all([...this.#members].map((member) => this.#orKill(member, member.change(settings))));
  }

  async drain(signal: AbortSignal): Promise<void> {
    if (this.#state !== 'closed') this.#state = 'draining';
    const drained = Promise.all([...this.#members].map((member) => member.drain()));
    await Promise.race([drained, untilAborted(signal)]);
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#stopLooking();
    await Promise.all([...this.#members].map((member) => this.#orKill(member, member.close())));
  }

  /** Waits for what the worker owes, and kills one that lets us wait: it hangs, and its deliveries with it. */
  async #orKill(member: Member<Settings>, owed: Promise<unknown>): Promise<void> {
    const cancel = this.#options.clock.after(PATIENCE, () => member.kill());
    await owed;
    cancel();
  }

  #fork(): Member<Settings> {
    const { clock, log } = this.#options;
    const started = clock.monotonic();
    const member = new Member<Settings>(cluster.fork(), this.#options, () => {
      return { op: 'start', settings: this.#settings, port: this.#port, admission: this.#admission };
    });
    this.#members.add(member);
    void member.ended.then((ending) => {
      this.#members.delete(member);
      this.#past.evicted += member.load.connections.evicted;
      this.#past.dropped += member.load.connections.dropped;
      // The shared socket went with the last of them.
      if (this.#members.size === 0) this.#port = this.#portInUse;
      // Before that `listen` rejects, and after it is as it should be.
      if (this.#state !== 'listening') return;
      log.error({ worker: member.pid, reason: reasonOf(ending) }, 'worker ended; starting another');
      this.#shortLived = clock.monotonic() - started < LIVED ? this.#shortLived + 1 : 0;
      // Not at once when the one before did not last either.
      const wait =
        this.#shortLived < 2 ? 0 : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** (this.#shortLived - 2));
      clock.after(wait, () => {
        if (this.#state === 'listening') this.#replace();
      });
    });
    return member;
  }

  #replace(): void {
    const { log } = this.#options;
    const member = this.#fork();
    member.listening.then(
      () => log.info({ worker: member.pid }, 'worker started'),
      (error: unknown) => {
        log.error({ worker: member.pid, error: messageOf(error) }, 'worker could not be started');
        member.kill();
      },
    );
  }

  #lookAtAdmission(): void {
    const before = this.#admission;
    this.#admission = this.#options.admission();
    if (codeOf(before) !== codeOf(this.#admission))
      for (const member of this.#members) member.send({ op: 'admission', admission: this.#admission });
    this.#stopLooking = this.#options.clock.after(ADMISSION_EVERY, () => this.#lookAtAdmission());
  }

  #sum(of: (member: Member<Settings>) => number): number {
    let sum = 0;
    for (const member of this.#members) sum += of(member);
    return sum;
  }
}

function codeOf(admission: Admission): string | null {
  return admission.ok ? null : admission.code;
}
