import type { Logger } from 'pino';
import { Audit } from './admin/audit.ts';
import { ActivityBoard } from './admin/activities.ts';
import { consoleLink } from './admin/console-access.ts';
import { directOperations } from './admin/direct-operations.ts';
import { createOperations } from './admin/operations.ts';
import { newToken, Tokens } from './admin/tokens.ts';
import { startAdmin, type Admin, type AdminOptions } from './admin/server.ts';
import type { Config, ResolvedConfig } from './config/config.ts';
import { systemClock, type Clock } from './core/clock.ts';
import { messageOf, type MillraceError } from './core/errors.ts';
import { GuardedIngest } from './core/ingest.ts';
import type { EventStore } from './core/journal.ts';
import type { Operations } from './core/operations.ts';
import type { NotedHead } from './core/proof.ts';
import { parseTarget } from './core/route.ts';
import type { Inlet } from './core/sink.ts';
import type { SourceContext } from './core/source.ts';
import { Dispatcher } from './deliver/dispatcher.ts';
import { DeliveredLog } from './deliver/delivered-log.ts';
import { Delivery } from './deliver/delivery.ts';
import { Status } from './admin/status.ts';
import { ErasedUsers } from './erase/erased-users.ts';
import { runErasures } from './erase/running-erasures.ts';
import { Cell, type Live } from './lib/live.ts';
import { Meter } from './metrics/meter.ts';
import { RefusalLog } from './metrics/refusal-log.ts';
import { createTracing } from './metrics/tracing.ts';
import type { Admission } from './receive/handle-delivery.ts';
import type { Outcome } from './receive/outcome.ts';
import { announceOwner, clearOwner, ownerFolder, readOwner, writeOwner } from './journal/owner.ts';
import { SqliteJournal, type SqliteJournalOptions } from './journal/sqlite-journal.ts';
import { LiveSinks } from './deliver/live-sinks.ts';
import { makePlan, needsRestart, type Plan } from './plan.ts';
import { warnOfReaders } from './config/private-folders.ts';
import { openProof } from './proof/open.ts';
import { createReceiving } from './workers/receiving.ts';
import { Reader } from './sources/reader.ts';
import { createTake } from './sources/take.ts';
import type { Validator } from './validate/envelope.ts';

export interface AppOptions {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Called once when the process must end because the journal can no longer be trusted. */
  readonly onFailure: (error: MillraceError) => void;
}

/** A running system: receiver, journal, dispatcher, sinks and admin listener. */
export interface App {
  /** Where deliveries go. */
  readonly url: string;
  readonly adminUrl: string | null;
  readonly operations: Operations;
  /** A link that opens the console once; null where there is none. */
  consoleLink(): string | null;
  /**
   * Takes over secrets, envelope, routes and sinks of a changed config, without losing a request.
   * @throws MillraceError when it cannot be used; everything then stays as it was
   */
  reload(loaded: ResolvedConfig): Promise<void>;
  /** Notes, for whoever watches, that a changed config could not be read or used. */
  noteFailedReload(error: unknown): void;
  /** Ends the intake, flushes what it can until `signal` aborts, and lets go of everything. Nothing durable is lost. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Builds the system that the config describes, innermost part first, so that the receiver only listens once all it
 * stands on does. When a part cannot start, those already started are stopped again.
 *
 * @throws MillraceError naming the key, folder or address that is in the way
 */
export async function startApp(loaded: ResolvedConfig, options: AppOptions): Promise<App> {
  const { log, clock = systemClock, onFailure } = options;
  const plan = new Cell(makePlan(loaded));
  const { config } = plan.value;
  const started: { stop(signal: AbortSignal): Promise<void> }[] = [];
  const stop = async (signal: AbortSignal): Promise<void> => {
    for (const part of started.toReversed()) await part.stop(signal);
    started.length = 0;
  };

  try {
    const validate: Validator = (body, known) => plan.value.validate(body, known);
    const meter = new Meter({ clock, plan });
    const tracing = createTracing() ?? undefined;
    const onCommit: Meter['committed'] = (events, ms) => meter.committed(events, ms);
    const users = ErasedUsers.open(config.erasure.path);
    const { isErased } = users;
    const journal =
      config.acknowledge === 'delivered'
        ? null
        : await openJournal(config, { clock, log, onFailure, onCommit, isErased });
    const store = journal ?? openMemory(plan, log);
    warnOfReaders(config, log);
    const ingest = new GuardedIngest(store, isErased, meter);
    const folder = ownerFolder(config);
    started.push({
      stop: () => {
        if (readOwner(folder)?.pid === process.pid) clearOwner(folder);
        return store.close();
      },
    });
    const { retryInitial, retryMax, giveUpAfter, sendTimeout, maxPending, maxPendingBytes } = config.delivery;
    const before = store.lastSeq;
    const dispatcher = new Dispatcher({
      journal: store,
      clock,
      log,
      retry: { initial: retryInitial, max: retryMax, giveUpAfter },
      sendTimeout,
      maxPending,
      maxPendingBytes,
      targetsOf: (event) => delivery.targetsOf(event),
      // What comes from now on was looked at when it came in, but for letters that are put back.
      isErased: (event) => (event.seq <= before || event.handling.only !== undefined) && users.has(event),
      observer: meter,
      tracing,
    });
    const take = createTake({ ingest, validate, maxBytes: config.server.maxBodyBytes });
    const inlet = journal === null ? {} : { inlet: { fields: () => plan.value.config.envelope, take } };
    const heads = new Map<string, NotedHead>();
    const proof = openProof(config, heads);
    const sinks = new LiveSinks(dispatcher, { log, clock, proof, ...inlet });
    const delivery = new Delivery({
      plan,
      dispatcher,
      sinks,
      routes: store,
      journal,
      isErased: (event) => users.has(event),
      clock,
      log,
    });
    const running = {
      pid: process.pid,
      sinks: () => dispatcher.status(),
      receiving: () => {
        const { open, evicted, dropped } = receiver.connections;
        const { maxConnections: max } = config.server;
        return { connections: { open, max, evicted, dropped }, refused: meter.refusals.lastHour() };
      },
    };
    const operations =
      journal === null
        ? directOperations(store, running)
        : createOperations({
            ...running,
            journal,
            validate,
            hasSink: (name) => plan.value.config.sinks[name] !== undefined,
            dropSink: (sink) => delivery.giveUp(sink),
          });
    const { recent } = meter;
    const audit = new Audit(folder);
    const erasures = runErasures({
      noteErased: (ids) => audit.note({ who: 'receiver', action: 'erase', what: 'erasures', ids }),
      plan,
      users,
      store,
      journal,
      dispatcher,
      sinks,
      proof,
      recent,
      log,
      clock,
    });
    const refusalLog = new RefusalLog(clock, log);
    started.push(refusalLog);
    const receiver = await createReceiving(plan, {
      clock,
      log,
      admission: () => admit(config, store, dispatcher),
      ingest,
      tracing,
      onOutcome: (outcome, info) => {
        meter.answered(outcome.kind === 'problem' ? outcome.code : outcome.kind, info);
        if (outcome.kind === 'problem') refusalLog.add(outcome.code, outcome.detail);
        logOutcome(log, outcome, info.type);
      },
      onError: (error) => log.error({ err: error }, 'unexpected error while receiving'),
    });
    const board = new ActivityBoard(clock);
    const status = new Status({
      plan,
      heads,
      meter,
      clock,
      store,
      dispatcher,
      receiver,
      operations,
      activities: () => [...erasures.activities(), ...board.list()],
    });
    started.push(status);
    const token = newToken();
    const tokens = new Tokens({ config: config.admin.token, owner: token }, clock);
    const admin = await startAdminFor(config, { tokens, audit, operations, erasures, board }, status);
    if (admin !== null) {
      // Below the dispatcher: health and status can be asked for as long as there is something to flush.
      started.push({ stop: () => admin.close() });
      announceOwner(folder, { admin: admin.url, token }, log);
    }
    started.push(delivery);
    await delivery.start();
    const readers = startReaders(plan.value, take, { log, clock, checkpoints: store.checkpoints });
    started.push(...readers);
    started.push({ stop: () => receiver.close() }, { stop: (signal) => receiver.drain(signal) });
    started.push(erasures);
    const { url } = await receiver.listen();
    erasures.start();
    log.info({ url, admin: admin?.url ?? null, sinks: [...plan.value.sinks.keys()] }, 'listening');

    const reload = async (changed: ResolvedConfig): Promise<void> => {
      const next = makePlan(changed);
      for (const key of needsRestart(config, next.config))
        log.warn({ key }, 'a change of this needs a restart');
      const deadline = AbortSignal.timeout(config.shutdown.deadline);
      await delivery.prepare(next, deadline);
      await plan.replace(next);
      await delivery.part(deadline);
      meter.reloaded(null);
      log.info({ sinks: [...next.sinks.keys()], routes: next.config.routes.length }, 'reloaded');
    };
    const adminUrl = admin?.url ?? null;
    const noteFailedReload = (error: unknown): void => meter.reloaded(messageOf(error));
    const link = (): string | null =>
      adminUrl === null || !config.console.enabled ? null : consoleLink(adminUrl, tokens.newLink());
    return { url, adminUrl, operations, consoleLink: link, reload: serially(reload), noteFailedReload, stop };
  } catch (error) {
    await stop(AbortSignal.abort()).catch((late: unknown) =>
      log.error({ err: late }, 'could not stop cleanly'),
    );
    throw error;
  }
}

/** @throws MillraceError as SqliteJournal.open does */
async function openJournal(
  { journal: options }: Config,
  {
    log,
    ...parts
  }: { readonly log: Logger } & Pick<SqliteJournalOptions, 'clock' | 'onFailure' | 'onCommit' | 'isErased'>,
): Promise<SqliteJournal> {
  const { path } = options;
  const journal = await SqliteJournal.open({
    ...options,
    ...parts,
    create: true,
    onDamage: (record) => log.error({ path, ...record }, 'a record of the journal is damaged'),
  });
  // At once, so that whoever finds the journal taken is told by whom; the admin listener's address follows.
  writeOwner(path, { pid: process.pid, admin: null, token: null });
  return journal;
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

/** Starts reading every source; a source that cannot be reached is tried again in the background. */
function startReaders({ sources }: Plan, take: Inlet['take'], parts: Omit<SourceContext, 'name'>): Reader[] {
  return sources.map(({ name, module, options }) => {
    const source = module.createSource(options, { name, ...parts });
    const reader = new Reader({ name, source, deliver: (batch) => take(name, batch), ...parts });
    reader.start();
    return reader;
  });
}

/** One call after the other, however they come. */
function serially<A>(work: (argument: A) => Promise<void>): (argument: A) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (argument) => {
    const next = last.then(() => work(argument));
    last = next.catch(() => undefined);
    return next;
  };
}

function admit(config: Config, store: EventStore, dispatcher: Dispatcher): Admission {
  const { maxBacklog } = config.journal;
  if (maxBacklog === 0 || store.lastSeq - dispatcher.slowestCursor() < maxBacklog) return ADMITTED;
  return { ok: false, code: 'backlog_full', retryAfterMs: config.server.retryAfter };
}

const ADMITTED: Admission = { ok: true };

function startAdminFor(
  config: Config,
  parts: Pick<AdminOptions, 'tokens' | 'audit' | 'operations' | 'erasures' | 'board'>,
  status: Status,
): Promise<Admin | null> {
  if (!config.admin.enabled) return Promise.resolve(null);
  const { host, port } = config.admin;
  return startAdmin({
    host,
    port,
    ...parts,
    health: () => status.health(),
    metrics: () => status.metrics(),
    console: config.console.enabled ? status.console : null,
  });
}

/** Every delivery at debug; only what nobody expects is worth a line of its own above that. */
function logOutcome(log: Logger, outcome: Outcome, type: string | null): void {
  if (outcome.kind === 'quarantined') {
    const codes = outcome.reasons.map(({ code }) => code);
    log.warn({ id: outcome.id, type, codes }, 'quarantined');
  } else if (outcome.kind === 'problem' && outcome.code === 'internal')
    log.error({ code: outcome.code }, 'delivery failed');
  else if (log.isLevelEnabled('debug')) log.debug({ outcome }, 'delivery');
}
