import type { Clock } from '../core/clock.ts';
import type { ServiceClient } from '../service/client.ts';
import type { BulkOp } from '../service/bulk.ts';
import { wait } from '../service/wait.ts';
import type { Checkpoint } from './checkpoint.ts';

export interface TriggerOptions {
  readonly service: ServiceClient;
  readonly checkpoint: Checkpoint;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pollMs: number;
  readonly onProgress: (
    provider: string,
    op: { readonly pending: number; readonly processed: number },
  ) => void;
}

/** Clocks differ: an op that began this much before our trigger may still be ours. */
const CLOCK_SKEW = 120_000;
/** Looks in vain for a bulk op before going on without it: the pulls themselves tell the end. */
const LOOKS = 3;

/**
 * Triggers the historical pull of all users, a provider at a time, once: the intention is written down first, and a run
 * that finds one without an outcome looks for its bulk op before it triggers again. Then follows the bulk ops.
 */
export async function triggerPulls(
  users: readonly string[],
  providers: readonly string[],
  options: TriggerOptions,
): Promise<void> {
  const { service, checkpoint, clock, signal } = options;
  for (const provider of providers) {
    const before = checkpoint.state.triggered[provider];
    if (before !== undefined && before.outcome !== 'intended') continue;
    if (before !== undefined && (await findOp(options, provider, before.at)) !== null) {
      await checkpoint.triggered(provider, { at: before.at, outcome: 'accepted' });
      continue;
    }
    const at = clock.now();
    await checkpoint.triggered(provider, { at, outcome: 'intended' });
    const { outcome } = await service.bulk.trigger({ userIds: users, provider }, { signal });
    await checkpoint.triggered(provider, { at, outcome });
  }
  for (const provider of providers) {
    const triggered = checkpoint.state.triggered[provider];
    if (triggered?.outcome === 'accepted') await followOp(options, provider, triggered.at);
  }
}

async function followOp(options: TriggerOptions, provider: string, at: number): Promise<void> {
  for (let missed = 0; missed < LOOKS;) {
    const op = await findOp(options, provider, at);
    if (op === null) missed += 1;
    else {
      options.onProgress(provider, op);
      if (op.status !== 'in_progress') return;
    }
    await wait(options.clock, options.pollMs, options.signal);
  }
}

/** An op has no id: ours is the first of its type and provider that began no earlier than our trigger. */
async function findOp(
  { service, signal }: TriggerOptions,
  provider: string,
  at: number,
): Promise<BulkOp | null> {
  let found: BulkOp | null = null;
  for await (const op of service.bulk.ops({ pageSize: 50 }, { signal })) {
    const started = Date.parse(op.started_at);
    if (started < at - CLOCK_SKEW) break;
    if (op.type === 'link_bulk_historical_trigger' && op.provider === provider) found = op;
  }
  return found;
}
