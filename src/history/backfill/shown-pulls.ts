import { hash } from 'node:crypto';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { PullStatus, UserPulls } from '../service/pulls.ts';
import { cursorOf, saysMore } from '../service/shape.ts';
import type { Connection } from './plan.ts';

/** The resource whose pull is waited for. */
export const RESOURCE = 'meal';

/** Users of a page. */
const PAGE = 50;
/** So many are asked for one by one, where the list has more than a page. */
const ASKED_ONE_BY_ONE = 50;

/** The pulls of meals that the service shows of a provider: those of these users, and maybe of others. */
export async function* shownPulls(
  { pulls }: ServiceClient,
  provider: string,
  users: ReadonlySet<string>,
  signal: AbortSignal,
): AsyncGenerator<Connection & { readonly pull: PullStatus }> {
  const query = { provider, userLimit: PAGE };
  const first = await pulls.status(query, { signal });
  yield* pullsIn(first.data, provider);
  if (cursorOf(first) === null && saysMore(first) === null) return;
  if (users.size > ASKED_ONE_BY_ONE)
    for await (const shown of pulls.users(query, { signal })) yield* pullsIn([shown], provider);
  else
    for (const userId of users)
      try {
        for await (const shown of pulls.users({ ...query, userId }, { signal }))
          yield* pullsIn([shown], provider);
      } catch (error) {
        // Whoever is gone meanwhile has none.
        if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
      }
}

function pullsIn(shown: readonly UserPulls[], provider: string): (Connection & { pull: PullStatus })[] {
  return shown.flatMap(({ user_id: user, provider: pulls }) => {
    const pull = pulls[provider]?.pulled[RESOURCE];
    return pull === undefined ? [] : { user: user.toLowerCase(), provider, pull };
  });
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
  const ended = new Map<string, string>();
  // A page that moves hides a user from one look: those who were not seen are looked for again, until none comes.
  let unseen: ReadonlySet<string> = new Set(users);
  for (let before = Infinity; unseen.size > 0 && unseen.size < before;) {
    before = unseen.size;
    const left = new Set(unseen);
    for await (const { user, pull } of shownPulls(service, provider, unseen, signal))
      if (left.delete(user) && hasEnded(pull)) ended.set(user, markOf(pull));
    unseen = left;
  }
  return Object.fromEntries(ended);
}

export function hasEnded({ status }: PullStatus): boolean {
  return status === 'success' || status === 'failure';
}

/** Other for each thing that the service can say of a pull. */
export function markOf(pull: PullStatus): string {
  const fields = Object.entries(pull).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16);
}
