import { removeForGood } from '../core/objects.ts';
import type { DeltaLog } from './log.ts';

/**
 * Removes all of a log that stands before a version, after a checkpoint of it: the commits of files that are gone still say
 * what was in them (their statistics). Older versions of the table cannot be read afterwards, nor could they without their
 * files.
 * @returns what the store keeps of it all the same
 */
export async function forgetBefore(log: DeltaLog, version: number, signal?: AbortSignal): Promise<string[]> {
  await log.snapshot(signal);
  await log.checkpoint(signal);
  const old: string[] = [];
  for await (const { key } of log.store.list(log.key(''), signal)) {
    const [, of] = /\/(\d{20})\.[^/]+$/.exec(key) ?? [];
    if (of !== undefined && Number(of) < version) old.push(key);
  }
  // The oldest first: what is left after a crash has no gap.
  return removeForGood(log.store, old, signal);
}
