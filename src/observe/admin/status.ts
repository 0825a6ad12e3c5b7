import type { DescribedConfig } from '../../config/config.ts';
import type {
  Activity,
  Operations,
  ReceiptsStatus,
  SinkStatus,
  SystemStatus,
} from '../../core/operations.ts';
import type { Clock } from '../../core/clock.ts';
import type { EventStore, Journal } from '../../core/journal.ts';
import type { NotedHead } from '../../core/proof.ts';
import type { SinkTrouble } from '../../core/sink.ts';
import type { SchemaWatch } from '../schema/watch.ts';
import { formatTarget } from '../../core/route.ts';
import { ownPackage } from '../../lib/installed.ts';
import type { Live } from '../../lib/live.ts';
import { realPath } from '../../lib/real-path.ts';
import type { MetricState } from '../metrics/definition.ts';
import { createExposition } from '../metrics/exposition.ts';
import { History, type Totals } from '../metrics/history.ts';
import type { Meter } from '../metrics/meter.ts';
import type { ConsoleSource } from './console.ts';
import type { ArchiveHead, Check, Health } from './health.ts';
import { unreadable } from './operations.ts';

export interface StatusOptions {
  readonly meter: Meter;
  readonly clock: Clock;
  readonly plan: Live<{ readonly config: DescribedConfig }>;
  readonly store: Pick<EventStore, 'lastSeq'> | (Pick<EventStore, 'lastSeq'> & Pick<Journal, 'read'>);
  /** Null where none is kept on this disk. */
  readonly journal: Pick<Journal, 'troubles'> | null;
  readonly dispatcher: { status(): readonly (SinkStatus & { readonly cursor: number })[] };
  readonly receiver: MetricState['receiver'] & { readonly ready: boolean; readonly state: string };
  /** True while deliveries are refused because of the backlog. */
  readonly isBacklogFull: () => boolean;
  readonly operations: Operations;
  readonly schema: Pick<SchemaWatch, 'figures'> | null;
  /** Erasures, replays and backfills. */
  readonly activities: () => readonly Activity[];
  /** Whether the console can start replays. */
  readonly canReplay: boolean;
  /** Heads of manifests, by the archive's folder. */
  readonly heads: ReadonlyMap<string, NotedHead>;
  /** Null without receipts. */
  readonly receipts: { status(): ReceiptsStatus } | null;
}

/** Milliseconds for which a status of the journal is reused. */
const STATUS_AGE_MS = 400;
const SECOND_MS = 1000;
/** Recent events in one state of the console. */
const RECENT_SHOWN = 60;

/** State of the receiver for health checks, Prometheus and the console. */
export class Status implements ConsoleSource {
  readonly #options: StatusOptions;
  readonly #exposition = createExposition();
  readonly #history: History;
  readonly #version = ownPackage().version;
  #status: { readonly at: number; readonly answer: Promise<SystemStatus> } | null = null;
  #stopTimer: () => void = () => {};

  constructor(options: StatusOptions) {
    this.#options = options;
    this.#history = new History(options.clock.now(), this.#totals());
    this.#tick();
  }

  stop(): Promise<void> {
    this.#stopTimer();
    return Promise.resolve();
  }

  /**
   * Ready while deliveries are accepted: from listening until the shutdown, unless the journal is full or the backlog above its mark.
   * With a journal, sinks do not matter. Without one, each required sink must have been open once.
   */
  health(): Health {
    const { receiver, dispatcher, plan, journal, isBacklogFull } = this.#options;
    const isFull = isBacklogFull();
    const full = journal?.troubles() ?? [];
    const { acknowledge, sinks: configured } = plan.value.config;
    const sinks = dispatcher.status().map(({ sink, mode, troubles }) => ({
      name: `sink ${sink}`,
      ok: mode === 'running' && troubles.length === 0,
      required: acknowledge === 'delivered' && configured[sink]?.required === true,
      state: mode,
      ...codesOf(troubles),
    }));
    const opening = sinks.some(({ required, state }) => required && state === 'opening');
    return {
      ready: receiver.ready && !isFull && !opening && full.length === 0,
      checks: [
        {
          name: 'receiver',
          ok: receiver.ready && !isFull,
          required: true,
          state: isFull ? 'backlog_full' : receiver.state,
        },
        // A journal that cannot be opened or written ends the process.
        {
          name: 'journal',
          ok: full.length === 0,
          required: true,
          state: full.length === 0 ? 'open' : 'full',
          ...codesOf(full),
        },
        ...this.#receipts(),
        ...sinks,
      ],
      archives: this.#archives(),
    };
  }

  /** Not required: events are safe without receipts. */
  #receipts(): Check[] {
    const status = this.#options.receipts?.status();
    if (status === undefined) return [];
    const state = status.behindSince === null ? 'running' : 'behind';
    return [{ name: 'receipts', ok: state === 'running', required: false, state }];
  }

  #archives(): ArchiveHead[] {
    const { plan, heads } = this.#options;
    return Object.entries(plan.value.config.sinks).flatMap(([sink, { description }]) => {
      const { archive } = description;
      // Heads are noted by the real path of the folder.
      const noted = archive === undefined ? undefined : heads.get(realPath(archive));
      return noted === undefined ? [] : [{ sink, ...noted }];
    });
  }

  async metrics(): Promise<{ contentType: string; text: string }> {
    const { meter, plan, receiver } = this.#options;
    const state: MetricState = {
      meter,
      status: await this.#currentStatus(),
      ready: this.health().ready,
      archives: this.#archives(),
      schema: this.#options.schema?.figures ?? null,
      receiver,
      config: plan.value.config,
      version: this.#version,
    };
    return { contentType: this.#exposition.contentType, text: await this.#exposition.render(state) };
  }

  /** A reload can turn bodies off. */
  get body(): ConsoleSource['body'] {
    return this.#options.plan.value.config.console.payloads ? (seq) => this.#bodyOf(seq) : undefined;
  }

  async state(since: number, after: number): Promise<object> {
    const { meter, plan, clock, activities, receiver } = this.#options;
    const { config } = plan.value;
    const { journal, sinks, receiving, earlier } = await this.#currentStatus();
    return {
      now: clock.now(),
      startedAt: meter.startedAt,
      version: this.#version,
      acknowledge: config.acknowledge,
      payloads: config.console.payloads && config.acknowledge === 'journaled',
      canReplay: this.#options.canReplay,
      ready: this.health().ready,
      state: receiver.state,
      reloads: meter.reloads,
      receiving,
      earlier,
      totals: {
        accepted: meter.accepted,
        duplicates: meter.duplicates,
        quarantined: meter.quarantined,
        erased: meter.erased,
        refused: meter.refused,
      },
      journal: { ...journal, cursors: undefined },
      sinks: sinks.map((sink) => {
        const { type, required } = config.sinks[sink.sink] ?? {};
        const cursor = journal.cursors.find((candidate) => candidate.sink === sink.sink);
        const { backlog = 0, backlogBytes = 0, backlogAge = 0 } = cursor ?? {};
        return { ...sink, type, required, backlog, backlogBytes, backlogAge };
      }),
      routes: config.routes.map(({ match, to }, index) => ({
        match,
        to: to.map(formatTarget),
        events: meter.routes.get(String(index)),
      })),
      unrouted: meter.routes.get('none'),
      history: this.#history.after(since),
      recent: meter.recent.after(after, RECENT_SHOWN),
      forgotten: meter.recent.forgotten,
      activities: activities(),
    };
  }

  async #bodyOf(seq: number): Promise<{ id: string; body: Buffer } | null> {
    if (seq < 1) return null;
    const { store } = this.#options;
    if (!('read' in store)) return unreadable();
    const [event] = await store.read(seq - 1, { count: 1, bytes: 1 });
    return event?.seq === seq ? event : null;
  }

  #currentStatus(): Promise<SystemStatus> {
    const now = this.#options.clock.monotonic();
    if (this.#status === null || now - this.#status.at > STATUS_AGE_MS)
      this.#status = { at: now, answer: this.#options.operations.status() };
    return this.#status.answer;
  }

  #tick(): void {
    this.#stopTimer = this.#options.clock.after(SECOND_MS, () => {
      this.#history.sample(this.#options.clock.now(), this.#totals());
      this.#tick();
    });
  }

  /** From memory only: this runs each second, also without a console. */
  #totals(): Totals {
    const { meter, dispatcher, store } = this.#options;
    return {
      accepted: meter.accepted,
      refused: meter.refused,
      quarantined: meter.quarantined,
      sinks: dispatcher.status().map(({ sink, delivered, waiting, lookedAt }) => {
        return { sink, delivered, backlog: waiting + Math.max(0, store.lastSeq - lookedAt) };
      }),
    };
  }
}

/** Codes only: details need a token. */
function codesOf(troubles: readonly SinkTrouble[]): Pick<Check, 'troubles'> {
  if (troubles.length === 0) return {};
  return { troubles: troubles.map(({ code, since }) => ({ code, since: new Date(since).toISOString() })) };
}
