import { hash } from 'node:crypto';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { PullStatus, UserPulls } from '../service/pulls.ts';
import { cursorOf, saysMore } from '../service/shape.ts';
import type { HistoryResource } from '../resources.ts';
import { pullKeyOf, usersLeft, type BackfillPlan } from './plan.ts';

/** Users on a page. */
const PAGE = 50;
/** Up to so many users are read one by one when the list has more than one page. */
const ASKED_ONE_BY_ONE = 50;

/** The pulls of these resources that the service shows for a provider: those of these users, and maybe others. */
export async function* shownPulls(
  service: ServiceClient,
  provider: string,
  resources: readonly HistoryResource[],
  users: ReadonlySet<string>,
  signal: AbortSignal,
) {
  for await (const { user_id, provider: shown } of shownUsers(service, provider, users, signal))
    for (const resource of resources) {
      const pull = shown[provider]?.pulled[resource.name];
      if (pull !== undefined) yield { user: user_id.toLowerCase(), provider, resource, pull };
    }
}

/** What the service shows of the pulls of these users, and maybe of others; of one provider, or of all. */
async function* shownUsers(
  { pulls }: ServiceClient,
  provider: string | undefined,
  users: ReadonlySet<string>,
  signal: AbortSignal,
): AsyncGenerator<UserPulls> {
  const query = { provider, userLimit: PAGE };
  const first = await pulls.status(query, { signal });
  yield* first.data;
  if (cursorOf(first) === null && saysMore(first) === null) return;
  if (users.size > ASKED_ONE_BY_ONE) yield* pulls.users(query, { signal });
  else
    for (const userId of users)
      try {
        yield* pulls.users({ ...query, userId }, { signal });
      } catch (error) {
        // A user who was deleted has none.
        if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
      }
}

/**
 * Tells the pulls of which the service says that it has not got all: they are not made, run, or have failed. All are when it does
 * not answer.
 */
export async function unsettledPulls(
  service: ServiceClient,
  plan: BackfillPlan,
  signal: AbortSignal,
): Promise<(task: Parameters<typeof pullKeyOf>[0]) => boolean> {
  const unsettled = new Set<string>();
  const providers = plan.providers.length === 0 ? [undefined] : plan.providers;
  try {
    for (const asked of providers)
      for await (const shown of shownUsers(service, asked, new Set(usersLeft(plan)), signal))
        for (const [provider, { pulled, not_pulled: missing }] of Object.entries(shown.provider)) {
          const open = Object.keys(pulled).filter((name) => pulled[name]?.status !== 'success');
          for (const name of [...open, ...(missing ?? [])])
            for (const one of [provider, null])
              unsettled.add(
                pullKeyOf({ user: shown.user_id.toLowerCase(), provider: one, resource: { name } }),
              );
        }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return () => true;
  }
  return (task) => unsettled.has(pullKeyOf(task));
}

/** Marks of the pulls that had ended before a trigger, by `user resource`: a status has no time that would show it. */
export async function endedPulls(
  service: ServiceClient,
  provider: string,
  resources: readonly HistoryResource[],
  users: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const ended = new Map<string, string>();
  // A shifted page hides users: those who were not seen are looked for until a look finds none of them.
  let unseen: ReadonlySet<string> = new Set(users);
  for (let before = Infinity; unseen.size > 0 && unseen.size < before;) {
    before = unseen.size;
    const left = new Set(unseen);
    for await (const { user, resource, pull } of shownPulls(service, provider, resources, unseen, signal)) {
      left.delete(user);
      const key = `${user} ${resource.name}`;
      const hasEnded = pull.status === 'success' || pull.status === 'failure';
      if (hasEnded && !ended.has(key)) ended.set(key, markOf(pull));
    }
    unseen = left;
  }
  return Object.fromEntries(ended);
}

/** Differs for each state of a pull. */
export function markOf(pull: PullStatus): string {
  const fields = Object.entries(pull).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16);
}
