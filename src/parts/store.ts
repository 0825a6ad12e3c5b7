import type { Logger } from 'pino';
import { warnOfReaders } from '../config/private-folders.ts';
import type { JournalEvent } from '../core/event.ts';
import { GuardedIngest } from '../core/ingest.ts';
import { parseTarget, type Target } from '../core/route.ts';
import { DeliveredLog } from '../deliver/delivered-log.ts';
import { openKafkaJournal } from '../journal/kafka/open.ts';
import type { KafkaJournal } from '../journal/kafka/store.ts';
import { clearOwner, readOwner, writeOwner, isLocal } from '../journal/owner.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import { orAborted } from '../lib/abort.ts';
import type { Live } from '../lib/live.ts';
import type { Stop } from '../lib/parts.ts';
import type { Plan } from '../plan.ts';
import { SchemaWatch } from '../schema/watch.ts';
import { createTake } from '../sources/take.ts';
import { checkEarlierJournals } from './earlier-journals.ts';
import type { System } from './system.ts';

/** What an event waits in: the journal, or memory with `acknowledge: delivered`. */
export async function openStore(system: System): Promise<Stop> {
  const { config, plan, clock, log, meter, users, validate, folder, existing = false, onFailure } = system;
  const { path } = config.journal;
  system.receiver = null;
  system.url = '';
  const noteJournal = existing ? null : await checkEarlierJournals(system);
  system.shared = config.journal.type === 'kafka' ? await openShared(system) : null;
  system.journal = isLocal(config)
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
  if (system.journal !== null) writeOwner(path, { pid: process.pid, admin: null, token: null });
  const store = system.journal ?? system.shared ?? openMemory(plan, log);
  system.store = store;
  system.schema = system.journal === null ? null : await openSchema(system, system.journal);
  system.ingest = new GuardedIngest(store, users.isErased, system.schema ?? meter);
  system.take = createTake({ ingest: system.ingest, validate, maxBytes: config.server.maxBodyBytes });
  warnOfReaders(config, log);
  const unfollow = system.shared === null ? () => undefined : users.follow();
  return async () => {
    unfollow();
    if (readOwner(folder)?.pid === process.pid) clearOwner(folder);
    await system.schema?.stop();
    await store.close();
  };
}

/** Also where it is off: a reload can turn it on. */
function openSchema(system: System, store: SqliteJournal): Promise<SchemaWatch> {
  const { plan, clock, log, meter } = system;
  return SchemaWatch.open(meter, {
    clock,
    log,
    store,
    ingest: () => system.ingest,
    settings: () => {
      const { enabled, alertTo } = plan.value.config.schema;
      return { enabled: enabled !== false, alertTo };
    },
    envelope: () => plan.value.config.envelope,
  });
}

function openShared(system: System): Promise<KafkaJournal> {
  const { config, plan, users, log } = system;
  return openKafkaJournal(config.journal, {
    maxWaiting: config.delivery.maxPendingBytes,
    targetsOf: targetsBy(plan),
    sinks: () => [...plan.value.sinks.keys()],
    handOver: (sink, signal) => handOver(system, sink, signal),
    flushSink: (sink) => void system.sinks.flush(sink).catch(() => undefined),
    isErased: users.isErased,
    log,
  });
}

/** Before others have its partitions: what is in flight is answered, and what a sink holds is confirmed. */
async function handOver({ dispatcher, sinks }: System, sink: string, signal: AbortSignal): Promise<void> {
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
