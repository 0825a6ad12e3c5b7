import { MillraceError } from '../../core/errors.ts';
import type { PullStatus } from '../service/pulls.ts';
import { wait } from '../service/wait.ts';
import type { Without } from './checkpoint.ts';
import type { HistoryResource } from '../resources.ts';
import { Patience, type WatchOptions } from './patience.ts';
import { pullKeyOf, type Connection } from './plan.ts';
import { markOf, shownPulls } from './shown-pulls.ts';

export interface FollowOptions extends WatchOptions {
  /** Providers whose triggers were all processed: a pull that is not shown will not come. */
  readonly processed: ReadonlySet<string>;
  /** Marks of the pulls that had ended before the trigger, by pull. */
  readonly ended: ReadonlyMap<string, string>;
}

/** Looks in a row without a new pull that count as proof: a new pull can take a moment to show, and a shifted page hides one. */
const LOOKS = 3;

/** The pull of a resource of a connection. */
export type Followed = Connection & { readonly resource: HistoryResource };

/**
 * Waits until these pulls have ended with `success` or `failure`, or are not made although the triggers were
 * processed.
 * @returns the pulls without success, and why
 * @throws MillraceError bulk_op_stuck when pulls do not begin
 */
export async function followPulls(
  followed: readonly Followed[],
  options: FollowOptions,
): Promise<Record<string, Without>> {
  const { clock, processed, ended } = options;
  const open = new Map(followed.map((one) => [pullKeyOf(one), one]));
  const without: Record<string, Without> = {};
  const leave = (key: string, status: Without['status'], reason: string): void => {
    open.delete(key);
    without[key] = { status, reason };
  };
  const patience = new Patience(clock, options.patienceMs);
  const missed = new Map<string, number>();
  const begun = new Set<string>();
  for (;;) {
    const shown = await lookAt(open, options);
    for (const [key, { provider, resource }] of open) {
      const pull = shown.get(key);
      // The pull from before the trigger has the mark; once another was shown, one with the same mark is ours.
      if (pull !== undefined && markOf(pull) !== ended.get(key)) begun.add(key);
      const looks = pull !== undefined && begun.has(key) ? 0 : (missed.get(key) ?? 0) + 1;
      missed.set(key, looks);
      if (looks > 0 && (looks < LOOKS || !processed.has(provider))) continue;
      if (pull === undefined) leave(key, 'not_pulled', `the service has made no ${resource.name} pull`);
      else if (pull.status === 'failure') leave(key, 'failed', reasonOf(pull.error_details));
      else if (pull.status === 'success') open.delete(key);
    }
    options.onProgress({
      phase: 'follow',
      total: followed.length,
      finished: followed.length - open.size,
      failed: Object.values(without).filter(({ status }) => status === 'failed').length,
      retrying: [...shown.values()].filter(({ status }) => status === 'retrying').length,
    });
    if (open.size === 0) return without;
    if (patience.isOver(open.size)) {
      giveUp(open, begun);
      for (const key of open.keys()) leave(key, 'failed', 'the pull did not end in time');
      return without;
    }
    await wait(clock, options.pollMs, options.signal);
  }
}

/** The open pulls that the service shows now. */
async function lookAt(
  open: ReadonlyMap<string, Followed>,
  { service, signal }: FollowOptions,
): Promise<ReadonlyMap<string, PullStatus>> {
  const shown = new Map<string, PullStatus>();
  for (const [provider, pulls] of Map.groupBy(open.values(), (one) => one.provider)) {
    const users = new Set(pulls.map(({ user }) => user));
    const resources = [...new Set(pulls.map(({ resource }) => resource))];
    for await (const one of shownPulls(service, provider, resources, users, signal)) {
      const key = pullKeyOf(one);
      if (open.has(key)) shown.set(key, one.pull);
    }
  }
  return shown;
}

/** @throws MillraceError bulk_op_stuck when a pull has not begun: the trigger may not have been accepted */
function giveUp(open: ReadonlyMap<string, Followed>, begun: ReadonlySet<string>): void {
  const none = [...open].find(([key]) => !begun.has(key));
  if (none === undefined) return;
  const [, { provider }] = none;
  const detail = `${provider}: the service shows neither a bulk operation nor, since the trigger, pulls of all users`;
  const what = '--resume checks again; without --trigger, another --out fetches what is there';
  throw new MillraceError('bulk_op_stuck', `${detail}; ${what}`);
}

function reasonOf(details: unknown): string {
  if (details === null || details === undefined) return 'the service gives no reason';
  return (typeof details === 'string' ? details : JSON.stringify(details)).slice(0, 500);
}
