import type { Logger } from 'pino';
import { ActivityBoard } from './admin/activities.ts';
import { Audit } from './admin/audit.ts';
import { directOperations } from './admin/direct-operations.ts';
import { EventSearch } from './admin/event-search.ts';
import { createOperations } from './admin/operations.ts';
import { startAdmin } from './admin/server.ts';
import { Status } from './admin/status.ts';
import { Replays, replaysFolder } from './admin/replays.ts';
import type { SinkArchive } from './admin/files-api.ts';
import type { SqlSource } from './admin/sql-api.ts';
import { newToken, Tokens } from './admin/tokens.ts';
import { warnOfReaders } from './config/private-folders.ts';
import { systemClock } from './core/clock.ts';
import type { MillraceError } from './core/errors.ts';
import { GuardedIngest, type Ingest } from './core/ingest.ts';
import type { EventStore } from './core/journal.ts';
import type { Operations, ReceivingStatus } from './core/operations.ts';
import type { NotedHead } from './core/proof.ts';
import { parseTarget } from './core/route.ts';
import type { Inlet } from './core/sink.ts';
import type { ObjectStore } from './core/storage.ts';
import type { Tracing } from './core/tracing.ts';
import { DeliveredLog } from './deliver/delivered-log.ts';
import { Delivery } from './deliver/delivery.ts';
import { Dispatcher } from './deliver/dispatcher.ts';
import { flushSinks } from './deliver/flush.ts';
import { LiveSinks } from './deliver/live-sinks.ts';
import { ErasedUsers } from './erase/erased-users.ts';
import { warnOfLeftSpools } from './erase/left-spools.ts';
import { runErasures, type RunningErasures } from './erase/running-erasures.ts';
import { announceOwner, clearOwner, ownerFolder, readOwner, writeOwner } from './journal/owner.ts';
import { openKafkaJournal } from './journal/kafka/open.ts';
import type { KafkaJournal } from './journal/kafka/store.ts';
import { isLocal } from './journal/local.ts';
import { JournalSearch } from './journal/search/search.ts';
import { SqliteJournal } from './journal/sqlite-journal.ts';
import { orAborted } from './lib/abort.ts';
import type { Live } from './lib/live.ts';
import type { Part, Stop } from './lib/parts.ts';
import { Meter } from './metrics/meter.ts';
import { RefusalLog } from './metrics/refusal-log.ts';
import { openTraces } from './metrics/otlp.ts';
import type { Plan } from './plan.ts';
import { droppedBy } from './proof/dropped.ts';
import { openProof } from './proof/open.ts';
import type { Admission } from './receive/stages.ts';
import type { Receiver } from './receive/options.ts';
import type { Outcome } from './receive/outcome.ts';
import { openStore as openPlace } from './storage/open.ts';
import { Consumer } from './sources/consumer.ts';
import { createTake } from './sources/take.ts';
import type { Validator } from './validate/envelope.ts';
import { receiptsPlace } from './receipts/place.ts';
import { Receipts } from './receipts/receipts.ts';
import { SchemaWatch } from './schema/watch.ts';
import { tablesWith } from './warehouse/learned/tables-with.ts';
import { createReceiving } from './workers/receiving.ts';

export interface AppOptions {
  readonly log: Logger;
  /** Called once when the process must end because the journal can no longer be trusted. */
  readonly onFailure: (error: MillraceError) => void;
  /** Never makes a journal; left out: one that is not there is made. */
  readonly existing?: boolean;
  /** With `journal.type: kafka`: the half of it that runs here; left out: both. */
  readonly role?: Role;
  /** The config file, for commands that the console starts; left out: it starts none. */
  readonly file?: string;
  /** Reads the config again, for the admin API; left out where there is none to read. Rejects when it cannot be used. */
  readonly reload?: () => Promise<void>;
}

export type Role = 'receive' | 'deliver';

/** What the parts start on. */
export function foundation(plan: Live<Plan>, options: AppOptions) {
  const { config } = plan.value;
  const heads = new Map<string, NotedHead>();
  const token = newToken();
  const folder = ownerFolder(config);
  const validate: Validator = (body, known) => plan.value.validate(body, known);
  return {
    ...options,
    plan,
    /** That of the start: what only a restart can change is read from it. */
    config,
    clock: systemClock,
    meter: new Meter({ clock: systemClock, plan }),
    users: ErasedUsers.open(config.erasure.path),
    heads,
    proof: openProof(config, heads),
    /** Where this process says who it is. */
    folder,
    audit: new Audit(folder),
    board: new ActivityBoard(systemClock),
    /** Of this start, for commands and the console. */
    token,
    tokens: new Tokens({ config: config.admin.token, owner: token }, systemClock),
    validate,
  };
}

/** Each part finds here what those before it have left, and leaves what those after it need. */
export type System = ReturnType<typeof foundation> & {
  tracing: Tracing | undefined;
  /** Null where nothing is kept on disk. */
  journal: SqliteJournal | null;
  store: EventStore;
  /** Of a fleet, in the place of a journal of this process's own; null without one. */
  shared: KafkaJournal | null;
  /** Null where no journal is kept that it could remember in. */
  schema: SchemaWatch | null;
  /** Null where none are given. */
  receipts: Receipts | null;
  ingest: Ingest;
  take: Inlet['take'];
  dispatcher: Dispatcher;
  sinks: LiveSinks;
  delivery: Delivery;
  erasures: RunningErasures;
  /** Null where nothing comes in. */
  receiver: Omit<Receiver, 'replace'> | null;
  operations: Operations;
  status: Status;
  /** Null where nothing is kept on disk. */
  search: EventSearch | null;
  /** Null without a console. */
  replays: Replays | null;
  sql: SqlSource | null;
  /** Null without an admin listener. */
  adminUrl: string | null;
  url: string;
};

/**
 * All that runs, in the order in which it starts; it stops in the reverse. Innermost first: what takes events in begins
 * when all it stands on does. The admin listener is there before the sinks are open, and until they are flushed.
 */
export const PARTS: readonly Part<System>[] = [
  { name: 'traces', start: startTraces },
  { name: 'store', start: openStore },
  { name: 'receipts', start: startReceipts },
  { name: 'delivery', start: makeDelivery },
  { name: 'erasures', start: makeErasures },
  { name: 'receiver', start: makeReceiver },
  { name: 'status', start: makeStatus },
  { name: 'search', start: makeSearch },
  { name: 'replays', start: makeReplays },
  { name: 'admin', start: openAdmin },
  { name: 'sinks', start: openSinks },
  { name: 'sources', start: startConsumers },
  { name: 'endpoint', start: listen },
  { name: 'due erasures', start: startErasures },
];

async function startTraces(system: System): Promise<Stop> {
  const { tracing, stop } = await openTraces((detail, message) => system.log.warn(detail, message));
  system.tracing = tracing ?? undefined;
  return stop;
}

/** Parts that one half of a fleet does without. */
const WITHOUT: Readonly<Record<Role, readonly string[]>> = {
  receive: ['sinks'],
  deliver: ['receiver', 'endpoint'],
};

/** What runs in a role. */
export function partsOf(role: Role | undefined): readonly Part<System>[] {
  return role === undefined ? PARTS : PARTS.filter(({ name }) => !WITHOUT[role].includes(name));
}

/** What an event waits in: the journal, or memory with `acknowledge: delivered`. */
async function openStore(system: System): Promise<Stop> {
  const { config, plan, clock, log, meter, users, validate, folder, existing = false, onFailure } = system;
  const { path } = config.journal;
  system.receiver = null;
  system.url = '';
  system.shared = config.journal.type === 'kafka' ? await openShared(system) : null;
  system.journal = !isLocal(config)
    ? null
    : await SqliteJournal.open({
        ...config.journal,
        create: !existing,
        clock,
        onFailure,
        isErased: users.isErased,
        onCommit: (events, ms) => meter.committed(events, ms),
        onCarryOver: (progress) =>
          log.info({ path, ...progress }, 'carrying the journal over to a new format'),
        onDamage: (record) => log.error({ path, ...record }, 'a journal record is damaged'),
      });
  // At once, so that whoever finds the journal taken is told by whom; the admin listener's address follows.
  if (system.journal !== null) writeOwner(path, { pid: process.pid, admin: null, token: null });
  const store = system.journal ?? system.shared ?? openMemory(plan, log);
  system.store = store;
  system.schema = system.journal === null ? null : await openSchema(system, system.journal);
  system.ingest = new GuardedIngest(store, users.isErased, system.schema ?? meter);
  system.take = createTake({ ingest: system.ingest, validate, maxBytes: config.server.maxBodyBytes });
  warnOfReaders(config, log);
  return async () => {
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

async function openShared(system: System): Promise<KafkaJournal> {
  const { config, plan, users, log } = system;
  return openKafkaJournal(config.journal, {
    maxWaiting: config.delivery.maxPendingBytes,
    targetsOf: ({ type, handling }) =>
      handling.only?.map(parseTarget) ?? plan.value.table.routesFor(type).targets,
    sinks: () => [...plan.value.sinks.keys()],
    handOver: (sink, signal) => handOver(system, sink, signal),
    flushSink: (sink) => void system.sinks.flush(sink).catch(() => undefined),
    isErased: users.isErased,
    openStore: (place) => openPlace(place, config.storage),
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
    targetsOf: ({ type, handling }) =>
      handling.only?.map(parseTarget) ?? plan.value.table.routesFor(type).targets,
    quarantineTo: () => plan.value.config.quarantine.to,
    maxBytes: plan.value.config.delivery.maxPendingBytes,
    onSkipped: (sink, events) => log.warn({ sink, events }, 'best-effort sink fell behind; events skipped'),
  });
}

/** Receipts are off: what the log does not have yet is not kept for it any more. */
async function forgoReceipts(journal: SqliteJournal, log: Logger): Promise<void> {
  const held = await journal.heldReceipts();
  if (held !== null && held < journal.lastSeq)
    log.warn(
      { entries: journal.lastSeq - held },
      'receipts are off: the last ones that were answered are not in the log, and will be lost to it when the journal clears their events',
    );
  await journal.holdReceipts(null);
}

/** Before anything comes in, and until all that came is in the log. */
async function startReceipts(system: System): Promise<Stop | void> {
  const { config, journal, clock, log } = system;
  system.receipts = null;
  if (journal === null) return;
  const place = await receiptsPlace(config);
  if (place === null) return forgoReceipts(journal, log);
  const { interval, witnesses } = config.receipts;
  const receipts = await Receipts.open({ ...place, journal, clock, log, interval, witnesses });
  system.receipts = receipts;
  journal.coverReceipts = () => receipts.cover();
  return () => receipts.stop();
}

function makeDelivery(system: System): void {
  const { plan, config, journal, store, take, users, clock, log, meter, proof, tracing } = system;
  const { retryInitial, retryMax, giveUpAfter, sendTimeout, maxPending, maxPendingBytes } = config.delivery;
  // Of a log that others write to, nothing says what came before an erasure.
  const before = system.shared === null ? store.lastSeq : Infinity;
  const dispatcher = new Dispatcher({
    journal: store,
    clock,
    log,
    retry: { initial: retryInitial, max: retryMax, giveUpAfter },
    sendTimeout,
    maxPending,
    maxPendingBytes,
    targetsOf: (event) => system.delivery.targetsOf(event),
    // What comes from now on was looked at when it came in, but for dead letters that are retried.
    isErased: (event) => (event.seq <= before || event.handling.only !== undefined) && users.has(event),
    observer: meter,
    tracing,
  });
  // Where there is no way into the journal, sinks make no events.
  const inlet = journal === null ? {} : { inlet: { fields: () => plan.value.config.envelope, take } };
  const isOptional = (name: string): boolean => plan.value.config.sinks[name]?.required === false;
  const stores = (url: string): Promise<ObjectStore> => openPlace(url, config.storage);
  const sinks = new LiveSinks(dispatcher, { log, clock, proof, openStore: stores, ...inlet }, isOptional);
  const isErased = users.has.bind(users);
  system.dispatcher = dispatcher;
  system.sinks = sinks;
  system.delivery = new Delivery({ plan, dispatcher, sinks, routes: store, journal, isErased, clock, log });
}

function makeErasures(system: System): Stop {
  const { audit, meter } = system;
  system.erasures = runErasures({
    ...system,
    journal: system.journal ?? system.shared,
    recent: {
      forget: (owned) => {
        meter.recent.forget(owned);
        meter.tail.forget();
        meter.deliveries.forget();
      },
    },
    noteErased: (ids) => audit.note({ who: 'receiver', action: 'erase', what: 'erasures', ids }),
  });
  // It may run before the last part has started: who asks through the admin listener does not wait for that.
  return () => system.erasures.stop();
}

async function makeReceiver(system: System): Promise<Stop> {
  const { plan, clock, log, ingest, tracing, meter } = system;
  const refusals = new RefusalLog(clock, log);
  const receiver = await createReceiving(plan, {
    clock,
    log,
    admission: () => admit(system),
    ingest,
    receipts: system.receipts ?? undefined,
    documents: documentsOf(system),
    tracing,
    onOutcome: (outcome, info) => {
      meter.answered(outcome.kind === 'problem' ? outcome.code : outcome.kind, info);
      if (outcome.kind === 'problem') refusals.add(outcome.code, outcome.detail);
      logOutcome(log, outcome, info.type);
    },
    onError: (error) => log.error({ err: error }, 'unexpected error while receiving'),
  });
  system.receiver = receiver;
  return () => refusals.stop();
}

function documentsOf({ receipts }: System) {
  return receipts === null
    ? undefined
    : { prefix: '/receipts/', find: (path: string) => receipts.find(path) };
}

function admit({ config, store, dispatcher }: System): Admission {
  const { maxBacklog } = config.journal;
  if (maxBacklog === 0 || store.lastSeq - dispatcher.slowestCursor() < maxBacklog) return ADMITTED;
  return { ok: false, code: 'backlog_full', retryAfterMs: config.server.retryAfter };
}

const ADMITTED: Admission = { ok: true };

/** Every delivery at debug; only what nobody expects is worth a line of its own above that. */
function logOutcome(log: Logger, outcome: Outcome, type: string | null): void {
  if (outcome.kind === 'quarantined') {
    const codes = outcome.reasons.map(({ code }) => code);
    log.warn({ id: outcome.id, type, codes }, 'quarantined');
  } else if (outcome.kind === 'problem' && outcome.code === 'internal')
    log.error({ code: outcome.code }, 'delivery failed');
  else if (log.isLevelEnabled('debug')) log.debug({ outcome }, 'delivery');
}

function makeStatus(system: System): Stop {
  const { plan, journal, shared, store, validate, dispatcher, delivery, erasures, board } = system;
  const running = {
    pid: process.pid,
    sinks: () => dispatcher.status(),
    receiving: () => receivingOf(system),
  };
  const administered = journal ?? shared;
  system.operations =
    administered === null
      ? directOperations(store, running)
      : createOperations({
          ...running,
          journal: administered,
          validate,
          schema: system.schema,
          hasSink: (name) => plan.value.config.sinks[name] !== undefined,
          dropSink: (sink) => delivery.giveUp(sink),
          noteDropped: droppedBy(system.proof),
        });
  const activities = () => [...erasures.activities(), ...board.list()];
  const receiver = system.receiver ?? NOT_RECEIVING;
  const status = new Status({ ...system, receiver, activities, canReplay: system.file !== undefined });
  system.status = status;
  return () => status.stop();
}

/** Nothing is to come in, so there is nothing to be ready for it. */
const NOT_RECEIVING = {
  ready: true,
  state: 'off',
  inFlight: 0,
  decompressing: 0,
  connections: { open: 0, evicted: 0, dropped: 0 },
};

function receivingOf({ receiver, receipts, config, plan, meter }: System): ReceivingStatus | null {
  if (receiver === null) return null;
  const { open, evicted, dropped } = receiver.connections;
  const { maxConnections: max } = config.server;
  return {
    connections: { open, max, evicted, dropped },
    refused: meter.refusals.lastHour(),
    signing: meter.signing(plan.value.config.signing.secrets.length),
    receipts: receipts?.status() ?? null,
  };
}

/** Its thread begins with the first search. */
function makeSearch(system: System): Stop | void {
  const { config, journal, delivery, plan, dispatcher, meter } = system;
  system.search = null;
  if (journal === null) return;
  const thread = new JournalSearch(config.journal.path, () => journal.status());
  system.search = new EventSearch({
    journal,
    find: (query) => thread.find(query),
    targetsOf: (event) => delivery.targetsOf(event),
    eraOf: (seq) => delivery.eraOf(seq),
    routeOf: (type) => plan.value.table.routesFor(type),
    sinks: () => dispatcher.status(),
    attemptsOf: (seq) => meter.deliveries.of(seq),
  });
  return () => thread.close();
}

/** Those that a person starts in the console; each is a process of its own. */
function makeReplays(system: System): Stop | void {
  const { config, plan, file } = system;
  system.replays = null;
  system.sql = null;
  if (!config.admin.enabled || !config.console.enabled || file === undefined) return;
  const replays = new Replays({
    config: file,
    folder: replaysFolder(config.journal.path),
    sinks: () =>
      new Map(
        Object.entries(plan.value.config.sinks).map(([name, { description }]) => {
          const { archive = null, writesStdout = false } = description;
          return [name, { archive, writesStdout }];
        }),
      ),
  });
  system.replays = replays;
  system.sql = {
    config: file,
    tables: async () => {
      const tables = await tablesWith(plan.value.config.tables);
      return tables.ofEvents().map(({ definition }) => definition.name);
    },
    isAllowed: () => plan.value.config.console.payloads,
    archives: () => archivesOf(plan.value),
  };
  return (signal) => replays.close(signal);
}

function archivesOf({ config }: Plan): readonly SinkArchive[] {
  return Object.entries(config.sinks).flatMap(([sink, { description }]) => {
    const { archive: path, keys } = description;
    return path === undefined ? [] : [{ sink, path, isSealed: keys !== undefined }];
  });
}

async function openAdmin(system: System): Promise<Stop | void> {
  const { config, status, token, folder, log } = system;
  system.adminUrl = null;
  if (!config.admin.enabled) return;
  const admin = await startAdmin({
    ...system,
    ...config.admin,
    archives: () => archivesOf(system.plan.value),
    flush: (names) => flushSinks(system, names),
    health: () => status.health(),
    metrics: () => status.metrics(),
    console: config.console.enabled ? status.console : null,
  });
  system.adminUrl = admin.url;
  announceOwner(folder, { admin: admin.url, token }, log);
  return () => admin.close();
}

async function openSinks({ delivery, shared }: System): Promise<Stop> {
  await delivery.start();
  await shared?.startKeeper();
  return (signal) => delivery.stop(signal);
}

/** Starts reading every source; a source that cannot be reached is tried again in the background. */
function startConsumers(system: System): Stop {
  const { plan, clock, log, store, take } = system;
  const parts = { clock, log, checkpoints: store.checkpoints };
  const consumers = plan.value.sources.map(({ name, module, options }) => {
    const source = module.createSource(options, { name, ...parts });
    return new Consumer({ name, source, deliver: (batch) => take(name, batch), ...parts });
  });
  for (const consumer of consumers) consumer.start();
  return async (signal) => {
    for (const consumer of consumers.toReversed()) await consumer.stop(signal);
  };
}

async function listen(system: System): Promise<Stop> {
  const { receiver, adminUrl: admin, folder, token, log } = system;
  if (receiver === null) return () => Promise.resolve();
  ({ url: system.url } = await receiver.listen());
  // Commands that send events find it there.
  if (admin !== null) announceOwner(folder, { admin, token, url: system.url }, log);
  return async (signal) => {
    await receiver.drain(signal);
    await receiver.close();
  };
}

async function startErasures({ erasures, config, log }: System): Promise<Stop> {
  await warnOfLeftSpools(config, log);
  erasures.start();
  // Again before anything else stops: what one that runs clears must still be open.
  return () => erasures.stop();
}
