import { MillraceError } from '../../core/errors.ts';
import { formatDuration } from '../../lib/units.ts';
import type { BulkOp } from '../service/pulls.ts';
import { wait } from '../service/wait.ts';
import type { Checkpoint, OpsBefore, Triggered } from './checkpoint.ts';
import { Patience, type WatchOptions } from './patience.ts';
import { resourcesIn, type Connection } from './plan.ts';
import { endedPulls } from './shown-pulls.ts';

interface TriggerOptions extends WatchOptions {
  readonly checkpoint: Checkpoint;
}

const TYPE = 'link_bulk_historical_trigger';
/** Looks for a bulk op before the run continues without it: the pulls show the end too. */
const LOOKS = 3;

/**
 * Triggers the pulls of all connections, provider by provider, and follows the bulk ops. Each trigger is noted before it is sent; a
 * run that finds one without an outcome looks for its bulk op before it triggers again.
 * @returns the providers whose triggers are known to be processed
 * @throws MillraceError bulk_op_ended, bulk_op_stuck: the next run continues there
 */
export async function triggerPulls(
  connections: readonly Connection[],
  options: TriggerOptions,
): Promise<ReadonlySet<string>> {
  const { checkpoint } = options;
  const providers = [...new Set(connections.map(({ provider }) => provider))];
  for (const provider of providers) {
    const before = checkpoint.state.triggered[provider];
    if (before !== undefined && before.outcome !== 'intended') continue;
    if (before !== undefined && (await findOp(options, provider, before)) !== null)
      await checkpoint.triggered(provider, { ...before, outcome: 'accepted' });
    else {
      const users = connections.filter((one) => one.provider === provider).map(({ user }) => user);
      await trigger(options, provider, users);
    }
  }
  const processed = new Set<string>();
  for (const provider of providers) {
    const triggered = checkpoint.state.triggered[provider];
    if (triggered === undefined) continue;
    if (triggered.outcome === 'completed' || (await followOp(options, provider, triggered)))
      processed.add(provider);
  }
  return processed;
}

async function trigger(options: TriggerOptions, provider: string, users: readonly string[]): Promise<void> {
  const { service, checkpoint, signal } = options;
  // From an earlier try, if there was one: its trigger may have been accepted.
  const ended =
    checkpoint.state.triggered[provider]?.ended ??
    (await endedPulls(service, provider, resourcesIn(checkpoint.state.plan), users, signal));
  const intended = { before: await opsBefore(options, provider), ended };
  await checkpoint.triggered(provider, { ...intended, outcome: 'intended' });
  const outcome = await service.bulk.trigger({ userIds: users, provider }, { signal });
  await checkpoint.triggered(provider, { ...intended, outcome });
}

/** Follows a bulk op. @returns true when its triggers were processed, false when the service does not show it */
async function followOp(options: TriggerOptions, provider: string, triggered: Triggered): Promise<boolean> {
  const { checkpoint, clock, patienceMs, pollMs, signal } = options;
  const patience = new Patience(clock, patienceMs);
  for (let missed = 0; missed < LOOKS;) {
    const op = await findOp(options, provider, triggered);
    if (op === null) missed += 1;
    else {
      missed = 0;
      const { status, processed, pending } = op;
      options.onProgress({ phase: 'trigger', provider, pending, processed });
      const said = `${provider}: ${processed} processed, ${pending} pending`;
      if (status === 'success') return true;
      if (status === 'aborted' || status === 'failure') {
        await checkpoint.triggered(provider, null);
        throw new MillraceError('bulk_op_ended', `${said}, ${status}; --resume triggers it again`);
      }
      // A status that is not known: the op is over when it has an end.
      if (status !== 'in_progress' && typeof op.ended_at === 'string') return true;
      if (patience.isOver(processed)) {
        const since = `for ${formatDuration(patienceMs)}`;
        throw new MillraceError('bulk_op_stuck', `${said}, the same ${since}; --resume follows it again`);
      }
    }
    await wait(clock, pollMs, signal);
  }
  return false;
}

/** Notes the ops before ours, which distinguishes them without a clock. */
async function opsBefore(options: TriggerOptions, provider: string): Promise<OpsBefore> {
  let since: string | null = null;
  let known = 0;
  for await (const op of opsSince(null, options)) {
    since ??= op.started_at;
    if (isOurKind(op, provider)) known += 1;
  }
  return { since, known };
}

/** Ours is the first op of its type and provider after those that were there before. */
async function findOp(
  options: TriggerOptions,
  provider: string,
  { before }: Triggered,
): Promise<BulkOp | null> {
  const found: BulkOp[] = [];
  for await (const op of opsSince(before.since ?? '1970-01-01', options))
    if (isOurKind(op, provider)) found.push(op);
  return found.at(-1 - before.known) ?? null;
}

/** Ops that began at a time or later, newest first; with null, those that began with the newest. */
async function* opsSince(time: string | null, { service, signal }: TriggerOptions): AsyncGenerator<BulkOp> {
  let since = time;
  for await (const op of service.bulk.ops({ pageSize: 50 }, { signal })) {
    since ??= op.started_at;
    if (Date.parse(op.started_at) < Date.parse(since)) return;
    yield op;
  }
}

function isOurKind(op: BulkOp, provider: string): boolean {
  return op.type === TYPE && op.provider === provider;
}
