import { hash } from 'node:crypto';
import { createOperations } from './admin/operations.ts';
import { directOperations } from './admin/direct-operations.ts';
import type { Clock } from './core/clock.ts';
import { MillraceError, messageOf } from './core/errors.ts';
import type { Event, Handling, JournalEvent } from './core/event.ts';
import {
  ID_REUSED,
  type AppendResult,
  type EventLog,
  type IsErased,
  type Journal,
  type RouteKeeper,
  type Unfitness,
} from './core/journal.ts';
import type { Operations, ReceivingStatus, SinkStatus } from './core/operations.ts';
import { parseTarget, type Target } from './core/route.ts';
import type { CheckpointStore } from './core/source.ts';
import type { SinkLog } from './core/sink.ts';
import { DirectLog } from './deliver/direct-log.ts';
import { clearOwner, ownerFolder, readOwner, writeOwner } from './journal/owner.ts';
import { SqliteJournal } from './journal/sqlite-journal.ts';
import type { Meter } from './metrics/meter.ts';
import type { Plan } from './plan.ts';
import type { Validator } from './validate/envelope.ts';

/** What stands between the receiver and the dispatcher: the journal, or with `acknowledge: delivered` memory. */
export interface Intake {
  readonly log: EventLog;
  readonly routes: RouteKeeper;
  /** Null where nothing is kept on disk. */
  readonly journal: Journal | null;
  /** Newest seq, for the backlog. */
  lastSeq(): number;
  /** @param dedupKey what tells a repetition; the event's id when left out */
  accept(event: Event, dedupKey?: string, handling?: Handling): Promise<AppendResult>;
  quarantine(event: Event, reasons: readonly Unfitness[], dedupKey?: string): Promise<AppendResult>;
  /** Resolves when everything handed in before has been answered. */
  settled(): Promise<void>;
  /** What an erasure clears of it; null when nothing is kept on disk. */
  readonly erasable: SqliteJournal | null;
  readonly checkpoints: CheckpointStore;
  onDelivered(sink: string, event: JournalEvent): void;
  operations(
    sinks: () => readonly SinkStatus[],
    receiving: () => ReceivingStatus,
    dropSink: Operations['dropSink'],
  ): Operations;
  /** Tells other processes who serves here, and where its admin API is. */
  announce(admin: string, token: string): void;
  close(): Promise<void>;
}

export interface IntakeOptions {
  /** The plan in force; a reload replaces it. */
  readonly plan: () => Plan;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly validate: Validator;
  readonly routesFor: (type: string) => readonly Target[];
  readonly onFailure: (error: MillraceError) => void;
  /** Events of erased users are dropped. */
  readonly isErased: IsErased;
  /** Told of each group commit of the journal. */
  readonly onCommit?: (events: number, durationMs: number) => void;
}

/** Opens what the config asks for. @throws MillraceError as SqliteJournal.open does */
export async function openIntake(options: IntakeOptions): Promise<Intake> {
  return options.plan().config.acknowledge === 'delivered' ? directIntake(options) : journaledIntake(options);
}

async function journaledIntake(options: IntakeOptions): Promise<Intake> {
  const { plan, clock, log, validate, onFailure, isErased, onCommit } = options;
  const { config } = plan();
  const { path } = config.journal;
  const journal = await SqliteJournal.open({
    ...config.journal,
    create: true,
    clock,
    onFailure,
    isErased,
    ...(onCommit === undefined ? {} : { onCommit }),
    onDamage: (record) => log.error({ path, ...record }, 'a record of the journal is damaged'),
  });
  // At once, so that whoever finds the journal taken is told by whom; the admin listener's address follows.
  writeOwner(path, { pid: process.pid, admin: null, token: null });
  return {
    log: journal,
    routes: journal,
    journal,
    lastSeq: () => journal.lastSeq,
    settled: () => journal.settled(),
    erasable: journal,
    accept: (event, dedupKey, handling) => journal.append(event, handling, dedupKey),
    quarantine: (event, reasons, dedupKey) => journal.quarantine(event, reasons, dedupKey),
    checkpoints: journal.checkpoints,
    onDelivered: () => undefined,
    operations: (sinks, receiving, dropSink) =>
      createOperations({
        journal,
        dropSink,
        validate,
        pid: process.pid,
        sinks,
        receiving,
        hasSink: (name) => plan().config.sinks[name] !== undefined,
      }),
    announce: (admin, token) => writeOwner(path, { pid: process.pid, admin, token }),
    close: async () => {
      clearOwner(path);
      await journal.close();
    },
  };
}

function directIntake({ plan, log, routesFor, isErased }: IntakeOptions): Intake {
  const folder = ownerFolder(plan().config);
  const direct = new DirectLog({
    isRequired: (sink) => plan().config.sinks[sink]?.required === true,
    targetsOf: ({ type, handling }) => handling.only?.map(parseTarget) ?? routesFor(type),
    maxBytes: plan().config.delivery.maxPendingBytes,
    onSkipped: (sink, events) => log.warn({ sink, events }, 'best-effort sink fell behind; events skipped'),
  });
  // There is no place of our own to keep it in: it goes to the sink named for it, or stays with the sender.
  const keep: Intake['quarantine'] = (event, reasons, dedupKey) => {
    const { to } = plan().config.quarantine;
    return to === null
      ? Promise.reject(new MillraceError('unfit', reasons.map(({ detail }) => detail).join('; ')))
      : direct.append(event, { only: [to] }, dedupKey);
  };
  /** An id that came before with other bytes: a key of its own lets it through. */
  const keepReused: Intake['quarantine'] = async (event, reasons, dedupKey = event.id) => {
    const result = await keep(event, reasons, JSON.stringify([dedupKey, hash('sha256', event.body, 'hex')]));
    return result.status === 'accepted' ? { status: 'reused' } : result;
  };
  return {
    log: direct,
    routes: direct,
    journal: null,
    lastSeq: () => direct.lastSeq,
    settled: () => Promise.resolve(),
    erasable: null,
    accept: async (event, dedupKey, handling = {}) => {
      if (isErased(event)) return ERASED;
      const result = await direct.append(event, handling, dedupKey);
      return result.status === 'reused' ? keepReused(event, [ID_REUSED], dedupKey) : result;
    },
    quarantine: async (event, reasons, dedupKey) => {
      if (isErased(event, reasons)) return ERASED;
      const result = await keep(event, reasons, dedupKey);
      return result.status === 'reused' ? keepReused(event, [ID_REUSED, ...reasons], dedupKey) : result;
    },
    // The brokers that are read in this mode keep their own place.
    checkpoints: { load: () => Promise.resolve(null), save: () => Promise.resolve() },
    onDelivered: (sink, event) => direct.delivered(sink, event),
    operations: (sinks, receiving) => directOperations(direct, process.pid, sinks, receiving),
    announce: (admin, token) => {
      try {
        writeOwner(folder, { pid: process.pid, admin, token });
      } catch (error) {
        const message =
          'no token can be left for commands and the console: only admin.token opens the admin API';
        log.warn({ folder, error: messageOf(error) }, message);
      }
    },
    close: () => {
      if (readOwner(folder)?.pid === process.pid) clearOwner(folder);
      return Promise.resolve();
    },
  };
}

const ERASED: AppendResult = { status: 'erased' };

/** The ways into the intake, with everything that comes in by them counted. */
export function counted(intake: Intake, meter: Meter): Pick<Intake, 'accept' | 'quarantine'> {
  return {
    accept: async (event, dedupKey, handling) => {
      const result = await intake.accept(event, dedupKey, handling);
      meter.stored(event, result);
      return result;
    },
    quarantine: async (event, reasons, dedupKey) => {
      const result = await intake.quarantine(event, reasons, dedupKey);
      meter.storedUnfit(event, reasons, result);
      return result;
    },
  };
}
