import type { Logger } from 'pino';
import { Audit } from './admin/audit.ts';
import { ActivityBoard } from './admin/activities.ts';
import { consoleLink } from './admin/console-access.ts';
import { newToken, Tokens } from './admin/tokens.ts';
import { startAdmin, type Admin, type AdminOptions } from './admin/server.ts';
import type { Config, LoadedConfig } from './config/config.ts';
import { systemClock, type Clock } from './core/clock.ts';
import { messageOf, type MillraceError } from './core/errors.ts';
import type { Operations } from './core/operations.ts';
import type { NotedHead, Proof } from './core/proof.ts';
import type { Target } from './core/route.ts';
import { Dispatcher } from './deliver/dispatcher.ts';
import { Delivery } from './deliver/delivery.ts';
import { Status } from './admin/status.ts';
import { ErasedUsers } from './erase/erased-users.ts';
import { runErasures } from './erase/running-erasures.ts';
import { openInlet } from './inlet.ts';
import { counted, openIntake, type Intake } from './intake.ts';
import { Meter } from './metrics/meter.ts';
import { RefusalLog } from './metrics/refusal-log.ts';
import { createTracing } from './metrics/tracing.ts';
import type { Admission } from './receive/handle-delivery.ts';
import type { Outcome } from './receive/outcome.ts';
import { ownerFolder } from './journal/owner.ts';
import { LiveSinks } from './deliver/live-sinks.ts';
import { makePlan, needsRestart, type Plan } from './plan.ts';
import { warnOfReaders } from './config/private-folders.ts';
import { openProof } from './proof/open.ts';
import { createReceiving } from './workers/receiving.ts';
import { createSourceIntake } from './sources/intake.ts';
import { Reader } from './sources/reader.ts';
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
  reload(loaded: LoadedConfig): Promise<void>;
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
export async function startApp(loaded: LoadedConfig, options: AppOptions): Promise<App> {
  const { log, clock = systemClock, onFailure } = options;
  let plan = await makePlan(loaded);
  const { config } = plan;
  const started: { stop(signal: AbortSignal): Promise<void> }[] = [];
  const stop = async (signal: AbortSignal): Promise<void> => {
    for (const part of started.toReversed()) await part.stop(signal);
    started.length = 0;
  };

  try {
    const routesFor = (type: string): readonly Target[] => plan.table.routesFor(type).targets;
    const validate: Validator = (body, known) => plan.validate(body, known);
    const meter = new Meter({ clock, routeOf: (type) => plan.table.routesFor(type).index });
    const tracing = createTracing() ?? undefined;
    const onCommit: Meter['committed'] = (events, ms) => meter.committed(events, ms);
    const users = ErasedUsers.open(config.erasure.path);
    const intake = await openIntake({
      plan: () => plan,
      clock,
      log,
      validate,
      routesFor,
      onFailure,
      onCommit,
      isErased: users.isErased,
    });
    warnOfReaders(config, log);
    const { accept, quarantine } = counted(intake, meter);
    started.push({ stop: () => intake.close() });
    const { retryInitial, retryMax, giveUpAfter, sendTimeout, maxPending, maxPendingBytes } = config.delivery;
    const before = intake.lastSeq();
    const dispatcher = new Dispatcher({
      journal: intake.log,
      clock,
      log,
      retry: { initial: retryInitial, max: retryMax, giveUpAfter },
      sendTimeout,
      maxPending,
      maxPendingBytes,
      targetsOf: (event) => delivery.targetsOf(event),
      // What comes from now on was looked at when it came in, but for letters that are put back.
      isErased: (event) => (event.seq <= before || event.handling.only !== undefined) && users.has(event),
      onDelivered: (sink, event) => {
        meter.delivered(sink, event);
        intake.onDelivered(sink, event);
      },
      observer: meter,
      tracing,
    });
    const inlet = openInlet({ plan: () => plan, validate, accept, quarantine });
    let heads: ReadonlyMap<string, NotedHead> = new Map();
    const openOnce = openProof(config);
    const proof = async (): Promise<Proof> => {
      const opened = await openOnce();
      heads = opened.heads.known;
      return opened;
    };
    const sinks = new LiveSinks(dispatcher, { log, clock, proof, ...(inlet === null ? {} : { inlet }) });
    const delivery = new Delivery({
      dispatcher,
      sinks,
      routes: intake.routes,
      journal: intake.journal,
      isErased: (event) => users.has(event),
      clock,
      log,
    });
    const operations = intake.operations(
      () => dispatcher.status(),
      () => {
        const { open, evicted, dropped } = receiver.connections;
        const { maxConnections: max } = config.server;
        return { connections: { open, max, evicted, dropped }, refused: meter.refusals.lastHour() };
      },
      (sink) => delivery.giveUp(sink),
    );
    const { recent } = meter;
    const audit = new Audit(ownerFolder(config));
    const erasures = runErasures({
      noteErased: (ids) => audit.note({ who: 'receiver', action: 'erase', what: 'erasures', ids }),
      config: () => plan.config,
      users,
      intake,
      dispatcher,
      sinks,
      proof,
      recent,
      log,
      clock,
    });
    const refusalLog = new RefusalLog(clock, log);
    started.push(refusalLog);
    const { receiver, change } = await createReceiving(plan, {
      clock,
      log,
      validate,
      admission: () => admit(config, intake, dispatcher),
      accept: (event, handling) => accept(event, undefined, handling),
      quarantine: (event, reasons) => {
        log.warn({ id: event.id, type: event.type, codes: reasons.map(({ code }) => code) }, 'quarantined');
        return quarantine(event, reasons);
      },
      tracing,
      onOutcome: (outcome, info) => {
        meter.answered(outcome.kind === 'problem' ? outcome.code : outcome.kind, info);
        if (outcome.kind === 'problem') refusalLog.add(outcome.code, outcome.detail);
        logOutcome(log, outcome);
      },
      onError: (error) => log.error({ err: error }, 'unexpected error while receiving'),
    });
    const board = new ActivityBoard(clock);
    const status = new Status({
      plan: () => plan,
      heads: () => heads,
      meter,
      clock,
      intake,
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
      intake.announce(admin.url, token);
    }
    started.push(delivery);
    await delivery.start(plan);
    const readers = startReaders(plan, { ...intake, accept, quarantine }, { log, clock }, validate);
    started.push(...readers);
    started.push({ stop: () => receiver.close() }, { stop: (signal) => receiver.drain(signal) });
    started.push(erasures);
    const { url } = await receiver.listen();
    erasures.start();
    log.info({ url, admin: admin?.url ?? null, sinks: [...plan.sinks.keys()] }, 'listening');

    const reload = async (changed: LoadedConfig): Promise<void> => {
      const next = await makePlan(changed);
      for (const key of needsRestart(config, next.config))
        log.warn({ key }, 'a change of this needs a restart');
      const deadline = AbortSignal.timeout(config.shutdown.deadline);
      await delivery.change(next, () => (plan = next), deadline);
      await change(next);
      await delivery.part(next, deadline);
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

/** Starts reading every source; a source that cannot be reached is tried again in the background. */
function startReaders(
  { config, sources }: Plan,
  intake: Intake,
  parts: { readonly log: Logger; readonly clock: Clock },
  validate: Validator,
): Reader[] {
  return sources.map(({ name, module, options }) => {
    const source = module.createSource(options, { name, checkpoints: intake.checkpoints, ...parts });
    const deliver = createSourceIntake({
      name,
      validate,
      accept: (event, key, handling) => intake.accept(event, key, handling),
      quarantine: (event, reasons, key) => intake.quarantine(event, reasons, key),
      maxBytes: config.server.maxBodyBytes,
    });
    const reader = new Reader({ name, source, deliver, ...parts });
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

function admit(config: Config, intake: Intake, dispatcher: Dispatcher): Admission {
  const { maxBacklog } = config.journal;
  if (maxBacklog === 0 || intake.lastSeq() - dispatcher.slowestCursor() < maxBacklog) return ADMITTED;
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
function logOutcome(log: Logger, outcome: Outcome): void {
  if (outcome.kind === 'problem' && outcome.code === 'internal')
    log.error({ code: outcome.code }, 'delivery failed');
  else if (log.isLevelEnabled('debug')) log.debug({ outcome }, 'delivery');
}
