import { hash } from 'node:crypto';
import type { ServiceClient } from '../service/client.ts';
import type { PullStatus } from '../service/pulls.ts';
import type { Connection } from './connections.ts';

/** The resource whose pull is waited for. */
export const RESOURCE = 'meal';

/** Every pull of meals that the service shows of a provider. */
export async function* shownPulls(
  { pulls }: ServiceClient,
  provider: string,
  signal: AbortSignal,
): AsyncGenerator<Connection & { readonly pull: PullStatus }> {
  for await (const shown of pulls.users({ provider, userLimit: 50 }, { signal })) {
    const pull = shown.provider[provider]?.pulled[RESOURCE];
    if (pull !== undefined) yield { user: shown.user_id.toLowerCase(), provider, pull };
  }
}

/**
 * The pulls that had come to an end before a trigger: a status has no time, so that only what is shown now tells later
 * whether it is of an earlier pull.
 * @returns a mark for each user who has one
 */
export async function endedPulls(
  service: ServiceClient,
  provider: string,
  users: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const wanted = new Set(users);
  const ended: Record<string, string> = {};
  for await (const { user, pull } of shownPulls(service, provider, signal))
    if (wanted.has(user) && hasEnded(pull)) ended[user] = markOf(pull);
  return ended;
}

export function hasEnded({ status }: PullStatus): boolean {
  return status === 'success' || status === 'failure';
}

/** Other for each thing that the service can say of a pull. */
export function markOf(pull: PullStatus): string {
  const fields = Object.entries(pull).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16);
}
