import { lstatSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { JournalEvent } from '../core/event.ts';
import { GuardedIngest, type Ingest } from '../core/ingest.ts';
import type { EventStore } from '../core/journal.ts';
import { parseTarget, type Target } from '../core/route.ts';
import type { Inlet, SinkLog } from '../core/sink.ts';
import { DeliveredLog } from '../deliver/delivered-log.ts';
import type { PlanRunner } from '../deliver/plan-runner.ts';
import { openKafkaJournal } from '../journal/kafka/open.ts';
import type { KafkaJournal } from '../journal/kafka/store.ts';
import { clearOwner, isLocal, readOwner, writeOwner } from '../journal/owner.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import { orAborted } from '../lib/abort.ts';
import type { Live } from '../lib/live.ts';
import type { Started } from '../lib/parts.ts';
import type { Plan } from './plan.ts';
import { SchemaWatch } from '../observe/schema/watch.ts';
import { createTake } from '../sources/take.ts';
import { checkEarlierJournals } from './earlier-journals.ts';
import type { Base } from './system.ts';

/** The store of events, and the ways into it. */
export interface StoreParts {
  /** The journal on this disk, that of a fleet, or memory with `acknowledge: delivered`. */
  readonly store: EventStore;
  /** Null without a journal on this disk. */
  readonly journal: SqliteJournal | null;
  /** The journal of a fleet; null without one. */
  readonly shared: KafkaJournal | null;
  /** Null without a journal on this disk. */
  readonly schema: SchemaWatch | null;
  readonly ingest: Ingest;
  readonly take: Inlet['take'];
}

/** The parts of delivery that give up partitions of a fleet. */
type Delivering = Pick<PlanRunner, 'dispatcher' | 'sinks'>;

/** @param delivering null until delivery has been made */
export async function openStore(
  base: Base,
  delivering: () => Delivering | null,
): Promise<Started<StoreParts>> {
  const { config, plan, clock, log, meter, users, validate, folder, existing, onFailure } = base;
  const { path } = config.journal;
  const noteJournal = existing === true ? null : await checkEarlierJournals(base);
  const shared = config.journal.type === 'kafka' ? await openShared(base, delivering) : null;
  const journal = isLocal(config)
    ? await SqliteJournal.open({
        ...config.journal,
        create: existing !== true,
        clock,
        onFailure,
        isErased: users.isErased,
        onCommit: (events, ms) => meter.committed(events, ms),
        onDamage: (record) => log.error({ path, ...record }, 'a journal record is damaged'),
        onRepair: (repair) => log.error({ path, ...repair }, 'the journal was damaged'),
      })
    : null;
  await noteJournal?.();
  // The previous owner of the journal may have erased users since this process read the list of them.
  users.refresh();
  // At once, so that another process can name the owner; the address of the admin listener follows.
  if (journal !== null) writeOwner(path, { pid: process.pid, admin: null, token: null });
  const store = journal ?? shared ?? openMemory(plan, log);
  const schema = journal === null ? null : await openSchema(base, journal, () => ingest);
  const ingest: Ingest = new GuardedIngest(store, users.isErased, schema ?? meter);
  const take = createTake({ ingest, validate, maxBytes: config.server.maxBodyBytes });
  warnOfOpenFolders(config, log);
  const unfollow = shared === null ? () => undefined : users.follow();
  return {
    made: { store, journal, shared, schema, ingest, take },
    stop: async () => {
      unfollow();
      if (readOwner(folder)?.pid === process.pid) clearOwner(folder);
      await schema?.stop();
      await store.close();
    },
  };
}

/** Also when it is off: a reload can turn it on. */
function openSchema(
  { plan, clock, log, meter }: Base,
  store: SqliteJournal,
  ingest: () => Ingest,
): Promise<SchemaWatch> {
  return SchemaWatch.open(meter, {
    clock,
    log,
    store,
    ingest,
    settings: () => {
      const { enabled, alertTo } = plan.value.config.schema;
      return { enabled: enabled !== false, alertTo };
    },
    envelope: () => plan.value.config.envelope,
  });
}

function openShared(
  { config, plan, users, log }: Base,
  delivering: () => Delivering | null,
): Promise<KafkaJournal> {
  return openKafkaJournal(config.journal, {
    maxWaiting: config.delivery.maxPendingBytes,
    targetsOf: targetsBy(plan),
    sinks: () => [...plan.value.sinks.keys()],
    handOver: (sink, signal) => handOver(delivering(), sink, signal),
    flushSink: (sink) =>
      void delivering()
        ?.sinks.get(sink)
        ?.flush?.()
        .catch(() => undefined),
    isErased: users.isErased,
    log,
  });
}

/** Before other processes get the partitions of a sink: waits for batches in flight, and makes it confirm what it holds. */
async function handOver(delivering: Delivering | null, sink: string, signal: AbortSignal): Promise<void> {
  if (delivering === null) return;
  const { dispatcher, sinks } = delivering;
  await orAborted(dispatcher.answeredBy(sink), signal);
  const holds = dispatcher.status().some((each) => each.sink === sink && each.held > 0);
  if (holds && !signal.aborted) await orAborted(Promise.resolve(sinks.get(sink)?.flush?.()), signal);
}

function openMemory(plan: Live<Plan>, log: Logger): DeliveredLog {
  return new DeliveredLog({
    isRequired: (sink) => plan.value.config.sinks[sink]?.required === true,
    targetsOf: targetsBy(plan),
    quarantineTo: () => plan.value.config.quarantine.to,
    maxBytes: plan.value.config.delivery.maxPendingBytes,
    onSkipped: (sink, events) =>
      log.warn({ sink, events }, 'best-effort sink fell behind, or was exchanged; events skipped'),
  });
}

/** By the routes in force: these stores do not keep those that an event was accepted under. */
function targetsBy(plan: Live<Plan>) {
  return ({ type, handling }: Pick<JournalEvent, 'type' | 'handling'>): readonly Target[] =>
    handling.only?.map(parseTarget) ?? plan.value.table.routesFor(type).targets;
}

/** Warns of folders with health data or secrets that other users of the machine can list. */
function warnOfOpenFolders(config: Config, log: SinkLog): void {
  const { journal, erasure } = config;
  const folders = {
    'journal.path': isLocal(config) ? journal.path : null,
    'erasure.path': erasure.path,
  };
  for (const [key, path] of Object.entries(folders)) {
    const mode = path === null ? undefined : lstatSync(path, { throwIfNoEntry: false })?.mode;
    if (mode === undefined || (mode & OTHERS) === 0 || process.platform === 'win32') continue;
    log.warn({ key, path, mode: (mode & 0o777).toString(8) }, 'other users can read this folder: chmod 700');
  }
}

const OTHERS = 0o005;
