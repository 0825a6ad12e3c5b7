import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { DescribedConfig } from '../config/config.ts';
import { announceOwner } from '../journal/owner.ts';
import type { Started } from '../lib/parts.ts';
import type { Plan } from './plan.ts';
import type { Receipts } from '../privacy/receipts/receipts.ts';
import type { Tracing } from '../core/tracing.ts';
import { RefusalLog } from '../observe/metrics/refusal-log.ts';
import type { Replaceable } from '../receive/options.ts';
import type { Outcome } from '../receive/outcome.ts';
import { Receiver } from '../receive/receiver.ts';
import type { DeliveryParts } from './delivery.ts';
import type { StoreParts } from './store.ts';
import type { Base } from './system.ts';

/** The parts that a receiver needs. */
export interface ReceiverParts extends Base, StoreParts, DeliveryParts {
  readonly receipts: Receipts | null;
}

export function makeReceiver(parts: ReceiverParts, tracing: Tracing | undefined): Started<Receiver> {
  const { config, plan, clock, log, ingest, meter, receipts } = parts;
  warnOfFewFiles(config, log);
  const refusals = new RefusalLog(clock, log);
  const { server } = config;
  const receiver = new Receiver({
    ...server,
    ...replaceable(plan.value),
    limits: { ...server, maxConnections: mostConnections(config) },
    clock,
    isBacklogFull: () => isBacklogFull(parts),
    ingest,
    receipts: receipts ?? undefined,
    documents: receipts === null ? undefined : { prefix: '/receipts/', find: (path) => receipts.find(path) },
    tracing,
    onOutcome: (outcome, info) => {
      meter.answered(outcome.kind === 'problem' ? outcome.code : outcome.kind, info);
      if (outcome.kind === 'problem') refusals.add(outcome.code, outcome.detail);
      logOutcome(log, outcome, info.type);
    },
    onForwarded: () =>
      log.warn(
        { trustedProxies: 0 },
        'deliveries have X-Forwarded-For, which is not trusted: behind a proxy all senders share one address; set server.trustedProxies to the number of proxies',
      ),
    onError: (error) => log.error({ err: error }, 'unexpected error while receiving'),
  });
  plan.subscribe((next) => receiver.replace(replaceable(next)));
  return { made: receiver, stop: () => refusals.stop() };
}

function replaceable({ verifier, validate, config }: Plan): Replaceable {
  return { verifier, validate, quarantineStatus: config.quarantine.respond };
}

/** True while the slowest sink is `journal.maxBacklog` events or more behind: deliveries are refused then. */
export function isBacklogFull({ config, store, dispatcher }: ReceiverParts): boolean {
  const { maxBacklog } = config.journal;
  return maxBacklog > 0 && store.lastSeq - dispatcher.slowestCursor() >= maxBacklog;
}

/** Every delivery at level debug; quarantined ones and internal errors at a higher level. */
function logOutcome(log: Logger, outcome: Outcome, type: string | null): void {
  if (outcome.kind === 'quarantined') {
    const codes = outcome.reasons.map(({ code }) => code);
    log.warn({ id: outcome.id, type, codes }, 'quarantined');
  } else if (outcome.kind === 'problem' && outcome.code === 'internal')
    log.error({ code: outcome.code }, 'delivery failed');
  else if (log.isLevelEnabled('debug')) log.debug({ outcome }, 'delivery');
}

/** @returns the URL for deliveries */
export async function listen(
  { folder, token, log }: Base,
  receiver: Receiver,
  admin: string | null,
): Promise<Started<string>> {
  const { url } = await receiver.listen();
  // Commands that send events read the URL there.
  if (admin !== null) announceOwner(folder, { admin, token, url }, log);
  const stop = async (signal: AbortSignal): Promise<void> => {
    await receiver.drain(signal);
    await receiver.close();
  };
  return { made: url, stop };
}

/** Open files of the journal, the log, the listeners, other sinks and Node itself. */
const OTHER_FILES = 200;

type FileUsers = Pick<DescribedConfig, 'server' | 'sinks'>;

/**
 * Most connections: those of the config, or fewer where the system allows too few open files. A process at that limit can neither
 * accept connections nor open its own files.
 */
export function mostConnections(config: FileUsers, allowed = filesAllowed()): number {
  const { maxConnections } = config.server;
  const left = allowed - filesBeside(config);
  return Math.min(maxConnections, Math.max(left, Math.floor(allowed / 4), 1));
}

function warnOfFewFiles(config: FileUsers, log: Pick<Logger, 'warn'>): void {
  const { maxConnections } = config.server;
  const allowed = filesAllowed();
  const needed = maxConnections + filesBeside(config);
  if (allowed >= needed) return;
  const most = mostConnections(config, allowed);
  const advice = `the limit of open files is low, so that at most ${most} connections are kept: raise ulimit -n to ${needed} (LimitNOFILE=${needed} of the service), or lower server.maxConnections`;
  log.warn({ allowed, needed, maxConnections }, advice);
}

/** Most open files beside connections. */
function filesBeside({ sinks }: FileUsers): number {
  const forSinks = Object.values(sinks).reduce(
    (sum, { description }) => sum + (description.openFiles ?? 0),
    0,
  );
  return forSinks + OTHER_FILES;
}

/** Open files that Linux allows this process; Infinity without a limit, and on other systems. */
function filesAllowed(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
