import type { Item } from './pending.ts';
import { backoff, type RetryOptions } from './retry.ts';
import type { Outcome } from './send.ts';

/** What is to be done about each delivery of a batch. */
export interface Verdict {
  readonly delivered: readonly Item[];
  /** The sink has them on its disk, and confirms them later. */
  readonly held: readonly { readonly item: Item; readonly until: Promise<void> }[];
  readonly dead: readonly { readonly item: Item; readonly code: string; readonly reason: string }[];
  /** To be tried again, each after its delay in milliseconds. */
  readonly later: readonly { readonly item: Item; readonly delayMs: number }[];
  /** Why the last of `later` has to wait; null without any. */
  readonly reason: string | null;
  /** Set when it is the sink itself that is in trouble: the last reason, and the longest wait it asked for. */
  readonly trouble: { readonly reason: string; readonly delayMs: number } | null;
}

/** @param ageOf milliseconds */
export function judge(
  outcomes: readonly Outcome[],
  retry: RetryOptions,
  ageOf: (item: Item) => number,
): Verdict {
  const delivered: Item[] = [];
  const held: { item: Item; until: Promise<void> }[] = [];
  const dead: { item: Item; code: string; reason: string }[] = [];
  const later: { item: Item; delayMs: number }[] = [];
  let reason: string | null = null;
  let trouble = null as Verdict['trouble'];
  const { giveUpAfter } = retry;
  for (const { item, result } of outcomes) {
    if (result.status === 'refused') dead.push({ item, code: result.code, reason: result.reason });
    else if (result.status === 'delivered') delivered.push(item);
    else if (result.status === 'held') held.push({ item, until: result.until });
    else if (giveUpAfter > 0 && ageOf(item) >= giveUpAfter)
      dead.push({ item, code: 'gave_up', reason: result.reason });
    else {
      ({ reason } = result);
      if (result.sink === true)
        trouble = { reason, delayMs: Math.max(trouble?.delayMs ?? 0, result.delayMs ?? 0) };
      later.push({ item, delayMs: result.delayMs ?? backoff(item.attempts, retry) });
    }
  }
  return { delivered, held, dead, later, reason, trouble };
}

/** Retries of one user come back together, after the longest of their waits. */
export function retryGroups(later: Verdict['later']): Map<string | Item, { items: Item[]; delayMs: number }> {
  const groups = new Map<string | Item, { items: Item[]; delayMs: number }>();
  for (const { item, delayMs } of later) {
    const key = item.key ?? item;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { items: [item], delayMs });
    else {
      group.items.push(item);
      group.delayMs = Math.max(group.delayMs, delayMs);
    }
  }
  return groups;
}
