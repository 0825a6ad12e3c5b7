import { hash } from 'node:crypto';
import type { Bytes } from '../../archive/place.ts';
import { ERASED_USER, type Owners } from '../../core/erasure.ts';
import { writeNew } from '../../lib/new-file.ts';
import type { Rewrite } from './rewrite-lines.ts';

/** The part of a backfill's state that names users; records are by `user provider`. */
interface State {
  readonly plan?: { readonly users?: readonly string[] };
  readonly without?: Readonly<Record<string, unknown>>;
  readonly again?: readonly string[];
  /** By provider; `ended` is by user. */
  readonly triggered?: Readonly<Record<string, { readonly ended?: Readonly<Record<string, unknown>> }>>;
}

/**
 * Rewrites the state of an unfinished backfill without the subjects. Placeholders keep the numbers of the other tasks; a run that
 * is resumed skips them.
 * @param temporary path of the new file until it is put in place
 * @returns null when it names no subject
 */
export async function rewritePlan(
  place: Bytes,
  file: string,
  temporary: string,
  owners: Owners,
): Promise<Rewrite | null> {
  const text = Buffer.concat(await Array.fromAsync(place.chunks(file))).toString();
  const state = parse(text);
  const removed: Record<string, number> = {};
  const requestsOf = (user: string): readonly string[] => owners.of({ team: null, user, clientUser: null });
  for (const user of state.plan?.users ?? [])
    for (const request of requestsOf(user)) removed[request] = (removed[request] ?? 0) + 1;
  if (Object.keys(removed).length === 0) return null;
  const next = stateWithout(state, (user) => requestsOf(user).length > 0);
  const bytes = Buffer.from(`${JSON.stringify(next)}\n`);
  await writeNew(temporary, bytes);
  return {
    removed,
    lines: next.plan.users.filter((user) => user === ERASED_USER).length,
    before: hash('sha256', text, 'hex'),
    after: { sha256: hash('sha256', bytes, 'hex'), bytes: bytes.length },
  };
}

/** The same state without some users. */
export function stateWithout(state: State, isGone: (user: string) => boolean) {
  const isLeft = (connection: string): boolean => !isGone(connection.split(' ')[0] ?? '');
  const left = (connections: Readonly<Record<string, unknown>> = {}): Record<string, unknown> =>
    Object.fromEntries(Object.entries(connections).filter(([connection]) => isLeft(connection)));
  const triggers = Object.entries(state.triggered ?? {}).map(([provider, one]) => [
    provider,
    { ...one, ...(one.ended && { ended: left(one.ended) }) },
  ]);
  const users = (state.plan?.users ?? []).map((user) => (isGone(user) ? ERASED_USER : user));
  return {
    ...state,
    plan: { ...state.plan, users },
    without: left(state.without),
    ...(state.again && { again: state.again.filter(isLeft) }),
    ...(state.triggered && { triggered: Object.fromEntries(triggers) as State['triggered'] }),
  };
}

/** The parser's own message quotes what it read. */
function parse(text: string): State {
  try {
    return JSON.parse(text) as State;
  } catch {
    throw new Error('not JSON');
  }
}
