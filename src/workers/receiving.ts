import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Clock } from '../core/clock.ts';
import type { Live } from '../lib/live.ts';
import { DEFAULT_LIMITS, type ReceiverLimits } from '../receive/limits.ts';
import type { Receiver, ReceiverOptions, Replaceable } from '../receive/options.ts';
import { createReceiver } from '../receive/receiver.ts';
import type { WorkerPool } from './pool.ts';

/** All that a process which only receives has to know of the config. */
export type Settings = Pick<Config, 'server' | 'signing' | 'envelope' | 'quarantine'>;

export interface ReceivingPlan extends Pick<Replaceable, 'verifier' | 'validate'> {
  readonly config: Settings;
}

export interface ReceivingOptions extends Pick<
  ReceiverOptions,
  'admission' | 'ingest' | 'onOutcome' | 'onForwarded' | 'onError' | 'tracing' | 'receipts' | 'documents'
> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Instead of that of the config, where the system allows fewer. */
  readonly maxConnections: number;
}

/** The open endpoint, in this process or, where `server.workers` asks for it, in several; it goes by the plan of now. */
export async function createReceiving(
  plan: Live<ReceivingPlan>,
  options: ReceivingOptions,
): Promise<Omit<Receiver, 'replace'>> {
  const { server } = plan.value.config;
  if (server.workers > 1) return createWorkers(plan, options);
  const { maxConnections, ...parts } = options;
  const { host, port, path, reusePort } = server;
  const receiver = createReceiver({
    host,
    port,
    path,
    reusePort,
    limits: { ...limitsOf(server), maxConnections },
    ...replaceable(plan.value),
    ...parts,
  });
  plan.subscribe((next) => receiver.replace(replaceable(next)));
  return receiver;
}

function replaceable({ verifier, validate, config }: ReceivingPlan): Replaceable {
  return { verifier, validate, quarantineStatus: config.quarantine.respond };
}

async function createWorkers(
  plan: Live<ReceivingPlan>,
  options: ReceivingOptions,
): Promise<WorkerPool<Settings>> {
  const { WorkerPool } = await import('./pool.ts');
  const { config } = plan.value;
  const { workers, port, reusePort } = config.server;
  const pool = new WorkerPool({ workers, port, reusePort, settings: settingsOf(config), ...options });
  plan.subscribe((next) => pool.change(settingsOf(next.config)));
  return pool;
}

/** No sinks and no keys of theirs: those stay in the first process. */
function settingsOf({ server, signing, envelope, quarantine }: Settings): Settings {
  return { server, signing, envelope, quarantine };
}

/** What one process of `server.workers` may take, so that all of them together take what one would. */
export function shareOf({ server }: Settings): Partial<ReceiverLimits> {
  const { workers, maxConnections, maxBodyBytes, unverifiedBytes } = server;
  return {
    ...limitsOf(server),
    maxConnections: Math.ceil(maxConnections / workers),
    unverifiedBytes: Math.ceil(unverifiedBytes / workers),
    // A body and what it is decompressed from must have room, however many share.
    maxBufferedBytes: Math.max(Math.ceil(DEFAULT_LIMITS.maxBufferedBytes / workers), 2 * maxBodyBytes),
  };
}

function limitsOf(server: Config['server']): Partial<ReceiverLimits> {
  const {
    host: _host,
    port: _port,
    path: _path,
    reusePort: _reusePort,
    workers: _workers,
    ...limits
  } = server;
  return limits;
}
