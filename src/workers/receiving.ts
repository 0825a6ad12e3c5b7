import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Clock } from '../core/clock.ts';
import { DEFAULT_LIMITS, type ReceiverLimits } from '../receive/limits.ts';
import type { Receiver, ReceiverOptions, Replaceable } from '../receive/options.ts';
import { createReceiver } from '../receive/receiver.ts';

/** All that a process which only receives has to know of the config. */
export type Settings = Pick<Config, 'server' | 'signing' | 'envelope' | 'quarantine'>;

export interface ReceivingPlan extends Pick<Replaceable, 'verifier'> {
  readonly config: Settings;
}

/** The open endpoint, in this process or in several. */
export interface Receiving {
  readonly receiver: Omit<Receiver, 'replace'>;
  /** Resolves when every delivery from now on is handled as this plan says. */
  readonly change: (plan: ReceivingPlan) => Promise<void>;
}

export interface ReceivingOptions extends Pick<
  ReceiverOptions,
  'validate' | 'admission' | 'ingest' | 'onOutcome' | 'onError' | 'tracing'
> {
  readonly clock: Clock;
  readonly log: Logger;
}

/** What receives by this plan: one process, this one, unless `server.workers` asks for more. */
export async function createReceiving(plan: ReceivingPlan, options: ReceivingOptions): Promise<Receiving> {
  const { server, quarantine } = plan.config;
  if (server.workers > 1) return createWorkers(plan, options);
  const { host, port, path, reusePort } = server;
  const receiver = createReceiver({
    host,
    port,
    path,
    reusePort,
    limits: limitsOf(server),
    verifier: plan.verifier,
    quarantineStatus: quarantine.respond,
    ...options,
  });
  const change: Receiving['change'] = ({ verifier, config }) => {
    receiver.replace({ verifier, quarantineStatus: config.quarantine.respond });
    return Promise.resolve();
  };
  return { receiver, change };
}

async function createWorkers({ config }: ReceivingPlan, options: ReceivingOptions): Promise<Receiving> {
  const { WorkerPool } = await import('./pool.ts');
  const { workers, port, reusePort } = config.server;
  const pool = new WorkerPool({ workers, port, reusePort, settings: settingsOf(config), ...options });
  return { receiver: pool, change: (next) => pool.change(settingsOf(next.config)) };
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
