import type { Logger } from 'pino';
import { announceOwner } from '../journal/owner.ts';
import type { Started } from '../lib/parts.ts';
import type { Plan } from './plan.ts';
import type { Receipts } from '../privacy/receipts/receipts.ts';
import type { Tracing } from '../core/tracing.ts';
import { RefusalLog } from '../observe/metrics/refusal-log.ts';
import type { Replaceable } from '../receive/options.ts';
import type { Outcome } from '../receive/outcome.ts';
import { Receiver } from '../receive/receiver.ts';
import { mostConnections, warnOfFewFiles } from './open-files.ts';
import type { Delivering } from './delivery.ts';
import type { Kept } from './store.ts';
import type { Base } from './system.ts';

/** What a receiver stands on. */
export interface Receiving extends Base, Kept, Delivering {
  readonly receipts: Receipts | null;
}

export function makeReceiver(system: Receiving, tracing: Tracing | undefined): Started<Receiver> {
  const { config, plan, clock, log, ingest, meter, receipts } = system;
  warnOfFewFiles(config, log);
  const refusals = new RefusalLog(clock, log);
  const { server } = config;
  const receiver = new Receiver({
    ...server,
    ...replaceable(plan.value),
    limits: { ...server, maxConnections: mostConnections(config) },
    clock,
    isBacklogFull: () => isBacklogFull(system),
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
        'deliveries have X-Forwarded-For, which is not trusted: behind a proxy all senders share one address; set server.trustedProxies to the number of proxies in front',
      ),
    onError: (error) => log.error({ err: error }, 'unexpected error while receiving'),
  });
  plan.subscribe((next) => receiver.replace(replaceable(next)));
  return { made: receiver, stop: () => refusals.stop() };
}

function replaceable({ verifier, validate, config }: Plan): Replaceable {
  return { verifier, validate, quarantineStatus: config.quarantine.respond };
}

/** True while the slowest sink is `journal.maxBacklog` events or more behind: nothing comes in then. */
export function isBacklogFull({ config, store, dispatcher }: Receiving): boolean {
  const { maxBacklog } = config.journal;
  return maxBacklog > 0 && store.lastSeq - dispatcher.slowestCursor() >= maxBacklog;
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

/** @returns where deliveries go */
export async function listen(
  { folder, token, log }: Base,
  receiver: Receiver,
  admin: string | null,
): Promise<Started<string>> {
  const { url } = await receiver.listen();
  // Commands that send events find it there.
  if (admin !== null) announceOwner(folder, { admin, token, url }, log);
  const stop = async (signal: AbortSignal): Promise<void> => {
    await receiver.drain(signal);
    await receiver.close();
  };
  return { made: url, stop };
}
