import { hash } from 'node:crypto';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { PullStatus, UserPulls } from '../service/pulls.ts';
import { cursorOf, saysMore } from '../service/shape.ts';
import { RESOURCE } from './document.ts';
import type { Connection } from './plan.ts';

/** Users on a page. */
const PAGE = 50;
/** Up to so many users are read one by one when the list has more than one page. */
const ASKED_ONE_BY_ONE = 50;

/** The pulls of the resource that the service shows for a provider: those of these users, and maybe others. */
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
        // A user who was deleted has none.
        if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
      }
}

function pullsIn(shown: readonly UserPulls[], provider: string): (Connection & { pull: PullStatus })[] {
  return shown.flatMap(({ user_id: user, provider: pulls }) => {
    const pull = pulls[provider]?.pulled[RESOURCE.pull];
    return pull === undefined ? [] : { user: user.toLowerCase(), provider, pull };
  });
}

/** Marks of the pulls that had ended before a trigger, by user: a status has no time that would show it. */
export async function endedPulls(
  service: ServiceClient,
  provider: string,
  users: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const ended = new Map<string, string>();
  // A shifted page hides users: those who were not seen are looked for until a look finds none of them.
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

/** Differs for each state of a pull. */
export function markOf(pull: PullStatus): string {
  const fields = Object.entries(pull).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16);
}
