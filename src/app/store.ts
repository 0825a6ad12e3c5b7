import { lstatSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { JournalEvent } from '../core/event.ts';
import { GuardedIngest, type Ingest } from '../core/ingest.ts';
import type { EventStore } from '../core/journal.ts';
import { parseTarget, type Target } from '../core/route.ts';
import type { Inlet, SinkLog } from '../core/sink.ts';
import { DeliveredLog } from '../deliver/delivered-log.ts';
import type { Dispatcher } from '../deliver/dispatcher.ts';
import type { LiveSinks } from '../deliver/live-sinks.ts';
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

/** Where events wait, and their way in. */
export interface Kept {
  /** The journal, that of a fleet, or memory with `acknowledge: delivered`. */
  readonly store: EventStore;
  /** Null where nothing is kept on this disk. */
  readonly journal: SqliteJournal | null;
  /** Of a fleet, in the place of a journal of this process's own; null without one. */
  readonly shared: KafkaJournal | null;
  /** Null where no journal is kept that it could remember in. */
  readonly schema: SchemaWatch | null;
  readonly ingest: Ingest;
  readonly take: Inlet['take'];
}

/** What takes events out of it. */
interface Outlet {
  readonly dispatcher: Dispatcher;
  readonly sinks: LiveSinks;
}

/** @param outlet what takes events out again, once it is there */
export async function openStore(base: Base, outlet: () => Outlet | null): Promise<Started<Kept>> {
  const { config, plan, clock, log, meter, users, validate, folder, existing = false, onFailure } = base;
  const { path } = config.journal;
  const noteJournal = existing ? null : await checkEarlierJournals(base);
  const shared = config.journal.type === 'kafka' ? await openShared(base, outlet) : null;
  const journal = isLocal(config)
    ? await SqliteJournal.open({
        ...config.journal,
        create: !existing,
        clock,
        onFailure,
        isErased: users.isErased,
        onCommit: (events, ms) => meter.committed(events, ms),
        onDamage: (record) => log.error({ path, ...record }, 'a journal record is damaged'),
        onRepair: (repair) => log.error({ path, ...repair }, 'the journal was damaged'),
      })
    : null;
  await noteJournal?.();
  // Whoever had the journal until now may have erased users since this process read the list of them.
  users.refresh();
  // At once, so that whoever finds the journal taken is told by whom; the admin listener's address follows.
  if (journal !== null) writeOwner(path, { pid: process.pid, admin: null, token: null });
  const store = journal ?? shared ?? openMemory(plan, log);
  const schema = journal === null ? null : await openSchema(base, journal, () => ingest);
  const ingest: Ingest = new GuardedIngest(store, users.isErased, schema ?? meter);
  const take = createTake({ ingest, validate, maxBytes: config.server.maxBodyBytes });
  warnOfReaders(config, log);
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

/** Also where it is off: a reload can turn it on. */
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

function openShared({ config, plan, users, log }: Base, outlet: () => Outlet | null): Promise<KafkaJournal> {
  return openKafkaJournal(config.journal, {
    maxWaiting: config.delivery.maxPendingBytes,
    targetsOf: targetsBy(plan),
    sinks: () => [...plan.value.sinks.keys()],
    handOver: (sink, signal) => handOver(outlet(), sink, signal),
    flushSink: (sink) =>
      void outlet()
        ?.sinks.flush(sink)
        .catch(() => undefined),
    isErased: users.isErased,
    log,
  });
}

/** Before others have its partitions: what is in flight is answered, and what a sink holds is confirmed. */
async function handOver(outlet: Outlet | null, sink: string, signal: AbortSignal): Promise<void> {
  if (outlet === null) return;
  const { dispatcher, sinks } = outlet;
  await orAborted(dispatcher.answeredBy(sink), signal);
  const holds = dispatcher.status().some((each) => each.sink === sink && each.held > 0);
  if (holds && !signal.aborted) await orAborted(sinks.flush(sink), signal);
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

/** Where an event goes now: nothing was decided when it came in. */
function targetsBy(plan: Live<Plan>) {
  return ({ type, handling }: Pick<JournalEvent, 'type' | 'handling'>): readonly Target[] =>
    handling.only?.map(parseTarget) ?? plan.value.table.routesFor(type).targets;
}

/** Warns of folders with health data or secrets that every user of the machine can list: those made here are 0700. */
function warnOfReaders(config: Config, log: SinkLog): void {
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
