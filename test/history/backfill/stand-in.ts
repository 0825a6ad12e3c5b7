import { text } from 'node:stream/consumers';
import { serve } from '../../support/listen.ts';

/** Instead of what a request would be answered with: a body with status 200, or a status. */
type Instead = string | number | null;

/** What the list of pulls says of one; any fields. */
export type Pull = Readonly<Record<string, unknown>> & { readonly status: string };

export interface Op {
  status: string;
  readonly users: readonly string[];
}

/** A service of made-up users and meals, and of one provider, `made_up`, that answers as a test sets it, in plain HTTP. */
export interface StandIn {
  readonly url: string;
  readonly env: Record<string, string>;
  readonly users: string[];
  /** Asked before each answer. */
  instead: (path: string, user: string) => Instead | Promise<Instead>;
  /** Meals that it has of each user; it answers 404 for one that is not here. */
  readonly meals: Map<string, number>;
  /** Ids of the meals that it has now of these users, or of all. Sorted. */
  mealIds(users?: readonly string[]): string[];
  /** Requests for meals so far, by user. */
  readonly asked: Map<string, number>;
  /** Oldest first: each trigger so far. */
  readonly ops: Op[];
  /** Whether the list of operations shows any. */
  showsOps: boolean;
  /** What the list of pulls shows of a user; nothing of one that is not here. */
  readonly pulls: Map<string, Pull>;
  /** Called for each trigger, which is done at once unless the op is set otherwise. */
  onTrigger: (op: Op) => void;
  /** Called before each answer about pulls since the newest trigger, with its number from 1; may return a status to answer with. */
  onLook: (look: number) => number | void;
  /** Whether a list of the pulls of all users, from 1, shows this one: a page that moves hides some. */
  hides: (user: string, list: number) => boolean;
  /** A status to answer with who is asked for the pulls of one user, or nothing. */
  onAsked: (user: string) => number | void;
  /** Requests for pulls so far. */
  askedForPulls: number;
}

const PULLS_PAGE = 50;

export const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

const dayOf = (n: number): string => `2026-01-${String((n % 31) + 1).padStart(2, '0')}`;

/** Users with a meal a day of January 2026 each, as many as `meals`, with two foods in it. */
export async function standIn({
  users: count,
  meals = 5,
}: {
  users: number;
  meals?: number;
}): Promise<StandIn> {
  const users = Array.from({ length: count }, (_, n) => id(n + 1));
  const idsOf = (user: string): string[] =>
    Array.from({ length: service.meals.get(user) ?? 0 }, (_, n) => mealId(user, n));
  let looks = 0;
  let lists = 0;
  const mealsOf = (user: string, range: URLSearchParams): object | number => {
    if (!service.meals.has(user)) return 404;
    const [from = '', to = ''] = ['start_date', 'end_date'].map((name) => range.get(name)?.slice(0, 10));
    const data = { bread: { energy: { unit: 'kcal', value: 90 } }, tea: {} };
    const found = idsOf(user).flatMap((meal, n) => {
      const timestamp = `${dayOf(n)}T08:00:00+00:00`;
      return dayOf(n) >= from && dayOf(n) <= to ? [{ id: meal, user_id: user, timestamp, data }] : [];
    });
    return { meals: found };
  };
  const pulled = (query: URLSearchParams): object | number => {
    const one = query.get('user_id');
    const from = Number(query.get('next_cursor') ?? 0);
    service.askedForPulls += 1;
    if (one === null && from === 0) lists += 1;
    const isLook = service.ops.length > 0 && from === 0 && one === null;
    const status = isLook ? service.onLook((looks += 1)) : undefined;
    const refused = one === null ? status : service.onAsked(one);
    const shown = [...service.pulls].filter(([user]) =>
      one === null ? !service.hides(user, lists) : user === one,
    );
    const page = shown.slice(from, from + PULLS_PAGE).map(([user_id, meal]) => ({
      user_id,
      provider: { made_up: { pulled: { meal } } },
    }));
    const next = from + PULLS_PAGE < shown.length ? String(from + PULLS_PAGE) : null;
    return refused ?? { data: page, next_cursor: next };
  };
  const answer = async ({ pathname, searchParams }: URL, body: string): Promise<object | string | number> => {
    const [, what = '', user = ''] = /^\/v2\/(user|summary\/meal)\/(.+)$/.exec(pathname) ?? [];
    const eater = what === 'summary/meal' ? user : '';
    if (eater !== '') service.asked.set(eater, (service.asked.get(eater) ?? 0) + 1);
    const other = await service.instead(pathname, eater);
    if (other !== null) return other;
    if (eater !== '') return mealsOf(eater, searchParams);
    if (what === 'user') return { user_id: user };
    switch (pathname) {
      case '/v2/user': {
        const offset = Number(searchParams.get('offset') ?? 0);
        const page = users.slice(offset).map((user_id) => ({ user_id }));
        return { users: page, total: users.length, offset, limit: 500 };
      }
      case '/v2/link/bulk_trigger_historical_pull': {
        const op = { status: 'success', users: (JSON.parse(body) as { user_ids: string[] }).user_ids };
        service.ops.push(op);
        looks = 0;
        service.onTrigger(op);
        return { detail: 'made up' };
      }
      case '/v2/link/bulk_op':
        return { data: service.showsOps ? service.ops.map(opJson).toReversed() : [] };
      case '/v2/introspect/historical_pull':
        return pulled(searchParams);
      default:
        return 404;
    }
  };
  const url = await serve((request, response) => {
    void text(request)
      .then((body) => answer(new URL(request.url ?? '', 'http://localhost'), body))
      .then((said) => {
        const done = request.method === 'POST' ? 202 : 200;
        const status = typeof said === 'number' ? said : done;
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(typeof said === 'string' ? said : JSON.stringify(said));
      });
  });
  const service: StandIn = {
    url,
    env: { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' },
    users,
    instead: () => null,
    meals: new Map(users.map((user) => [user, meals])),
    mealIds: (of = users) => of.flatMap(idsOf).toSorted(),
    asked: new Map(),
    ops: [],
    showsOps: true,
    pulls: new Map(),
    onTrigger: () => undefined,
    onLook: () => undefined,
    hides: () => false,
    onAsked: () => undefined,
    askedForPulls: 0,
  };
  return service;
}

function mealId(user: string, n: number): string {
  return `${user.slice(-4)}-${String(n).padStart(4, '0')}`;
}

function opJson({ status, users }: Op, nth: number): object {
  return {
    type: 'link_bulk_historical_trigger',
    status,
    provider: 'made_up',
    pending: 0,
    processed: users.length,
    started_at: `2026-01-01T00:00:0${nth}Z`,
    ended_at: null,
  };
}
