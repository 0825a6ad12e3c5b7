import type { Logger } from 'pino';
import { startAdmin, type Admin } from './admin/server.ts';
import { requireSecrets, type Config, type LoadedConfig } from './config/config.ts';
import { claimCheckSink } from './config/rules.ts';
import { resolveSinks, type ResolvedSink } from './config/sinks.ts';
import { systemClock, type Clock } from './core/clock.ts';
import type { MillraceError } from './core/errors.ts';
import type { Operations } from './core/operations.ts';
import type { Target } from './core/route.ts';
import type { Sink } from './core/sink.ts';
import type { Keep } from './deliver/claim-check.ts';
import { Dispatcher } from './deliver/dispatcher.ts';
import { openIntake, type Intake } from './intake.ts';
import type { Admission } from './receive/handle-delivery.ts';
import type { Receiver } from './receive/options.ts';
import type { Outcome } from './receive/outcome.ts';
import { createReceiver } from './receive/receiver.ts';
import { compileRoutes } from './route/table.ts';
import { loadSinkModule } from './sinks/registry.ts';
import { createValidator } from './validate/envelope.ts';
import { createVerifier } from './verify/registry.ts';

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
  /** Ends the intake, flushes what it can until `signal` aborts, and lets go of everything. Nothing durable is lost. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Builds the system that the config describes, innermost part first, so that the receiver only listens once all it
 * stands on does. When a part cannot start, those already started are stopped again.
 *
 * @throws MillraceError naming the key, folder or address that is in the way
 */
export async function startApp(
  loaded: LoadedConfig,
  { log, clock = systemClock, onFailure }: AppOptions,
): Promise<App> {
  const { config } = loaded;
  requireSecrets(config);
  const verifier = createVerifier(config.signing);
  const validate = createValidatorFor(config);
  const table = compileRoutes(config.routes);
  const resolved = await resolveSinks(loaded, loadSinkModule);
  const started: { stop(signal: AbortSignal): Promise<void> }[] = [];
  const stop = async (signal: AbortSignal): Promise<void> => {
    for (const part of started.toReversed()) await part.stop(signal);
    started.length = 0;
  };

  try {
    const routesFor = (type: string): readonly Target[] => table.routesFor(type).targets;
    const intake = await openIntake({ config, clock, log, validate, routesFor, onFailure });
    started.push({ stop: () => intake.close() });
    const sinks = createSinks(resolved, log, clock);
    const dispatcher = new Dispatcher({
      journal: intake.log,
      clock,
      log,
      sinks,
      keepers: keepersOf(config, sinks),
      retry: {
        initial: config.delivery.retryInitial,
        max: config.delivery.retryMax,
        giveUpAfter: config.delivery.giveUpAfter,
      },
      maxPending: config.delivery.maxPending,
      maxPendingBytes: config.delivery.maxPendingBytes,
      routesFor,
      onDelivered: (sink, event) => intake.onDelivered(sink, event),
    });
    const operations = intake.operations(() => dispatcher.status());
    const receiver = createReceiver({
      ...receiverOptions(config),
      clock,
      verifier,
      validate,
      quarantineStatus: config.quarantine.respond,
      admission: () => admit(config, intake, dispatcher),
      accept: (event) => intake.accept(event),
      quarantine: (event, reasons) => {
        log.warn({ id: event.id, type: event.type, codes: reasons.map(({ code }) => code) }, 'quarantined');
        return intake.quarantine(event, reasons);
      },
      onOutcome: (outcome) => logOutcome(log, outcome),
      onError: (error) => log.error({ err: error }, 'unexpected error while receiving'),
    });
    const admin = await startAdminFor(config, operations, receiver);
    if (admin !== null) {
      // Below the dispatcher: health and status can be asked for as long as there is something to flush.
      started.push({ stop: () => admin.close() });
      intake.announce(admin.url);
    }
    started.push(dispatcher);
    await dispatcher.start();
    started.push({ stop: () => receiver.close() }, { stop: (signal) => receiver.drain(signal) });
    const { url } = await receiver.listen();
    log.info({ url, admin: admin?.url ?? null, sinks: [...sinks.keys()] }, 'listening');
    return { url, adminUrl: admin?.url ?? null, operations, stop };
  } catch (error) {
    await stop(AbortSignal.abort()).catch((late: unknown) =>
      log.error({ err: late }, 'could not stop cleanly'),
    );
    throw error;
  }
}

function createSinks(resolved: readonly ResolvedSink[], log: Logger, clock: Clock): Map<string, Sink> {
  return new Map(
    resolved.map(({ name, module, options }) => [name, module.createSink(options, { name, log, clock })]),
  );
}

/** For each sink with `oversize: claim-check`, the `keep` of the files sink that it names. */
function keepersOf(config: Config, sinks: ReadonlyMap<string, Sink>): Map<string, Keep> {
  const keepers = new Map<string, Keep>();
  for (const [name, { oversize }] of Object.entries(config.sinks)) {
    const keeper = oversize === 'claim-check' ? sinks.get(claimCheckSink(config, name) ?? '') : undefined;
    if (keeper?.keep !== undefined) keepers.set(name, keeper.keep.bind(keeper));
  }
  return keepers;
}

function admit(config: Config, intake: Intake, dispatcher: Dispatcher): Admission {
  const { maxBacklog } = config.journal;
  if (maxBacklog === 0 || intake.lastSeq() - dispatcher.slowestCursor() < maxBacklog) return ADMITTED;
  return { ok: false, code: 'backlog_full', retryAfterMs: config.server.retryAfter };
}

const ADMITTED: Admission = { ok: true };

function startAdminFor(config: Config, operations: Operations, receiver: Receiver): Promise<Admin | null> {
  if (!config.admin.enabled) return Promise.resolve(null);
  const { host, port, token } = config.admin;
  return startAdmin({ host, port, token, operations, ready: () => receiver.ready });
}

function envelopeOptions({ envelope }: Config): Parameters<typeof createValidator>[0] {
  const { type, team, user, clientUser, ...rest } = envelope;
  return { ...rest, fields: { type, team, user, clientUser } };
}

function receiverOptions({
  server,
}: Config): Pick<Parameters<typeof createReceiver>[0], 'host' | 'port' | 'path' | 'reusePort' | 'limits'> {
  const { host, port, path, reusePort, ...limits } = server;
  return { host, port, path, reusePort, limits };
}

/** Every delivery at debug; only what nobody expects is worth a line of its own above that. */
function logOutcome(log: Logger, outcome: Outcome): void {
  if (outcome.kind === 'problem' && outcome.code === 'internal')
    log.error({ code: outcome.code }, 'delivery failed');
  else if (log.isLevelEnabled('debug')) log.debug({ outcome }, 'delivery');
}

/** The validator of a config, for commands that look at quarantined events again. */
export function createValidatorFor(config: Config): ReturnType<typeof createValidator> {
  return createValidator(envelopeOptions(config));
}
