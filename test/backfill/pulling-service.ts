import { text } from 'node:stream/consumers';
import { serve } from '../support/listen.ts';

/** What the list of pulls says of one; any fields. */
export type Pull = Readonly<Record<string, unknown>> & { readonly status: string };

export interface Op {
  status: string;
  readonly users: readonly string[];
}

/** A service of one provider, `made_up`, that pulls what it is told to, in plain HTTP. */
export interface PullingService {
  readonly env: Record<string, string>;
  readonly users: string[];
  /** Oldest first: each trigger so far. */
  readonly ops: Op[];
  /** Whether the list of operations shows any. */
  showsOps: boolean;
  /** What the list of pulls shows of a user; nothing of one that is not here. */
  readonly pulls: Map<string, Pull>;
  /** Meals that the service has of each user; it answers 404 for one that is not here. */
  readonly meals: Map<string, number>;
  /** Told of each trigger, which is over at once unless the op is set otherwise. */
  onTrigger: (op: Op) => void;
  /** Told before each answer about pulls since the newest trigger, from 1; a status to answer with instead, or nothing. */
  onLook: (look: number) => number | void;
  /** Whether a list of the pulls of all users, from 1, shows this one: a page that moves hides some. */
  hides: (user: string, list: number) => boolean;
  /** A status to answer with who is asked for the pulls of one user, or nothing. */
  onAsked: (user: string) => number | void;
  /** Requests for pulls so far. */
  askedForPulls: number;
  /** Ids of all meals that it has now, sorted. */
  mealIds: () => string[];
}

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

export async function pullingService(users: number): Promise<PullingService> {
  const idsOf = (user: string): string[] =>
    Array.from({ length: service.meals.get(user) ?? 0 }, (_, n) => `${user.slice(-4)}-${n}`);
  let looks = 0;
  let lists = 0;
  const answer = (url: URL, body: string): object | number => {
    const [, user = ''] = /^\/v2\/(?:user|summary\/meal)\/(.+)$/.exec(url.pathname) ?? [];
    switch (url.pathname) {
      case '/v2/user':
        return { users: service.users.map((user_id) => ({ user_id })), total: users, limit: 500 };
      case `/v2/user/${user}`:
        return { user_id: user };
      case '/v2/link/bulk_trigger_historical_pull': {
        const op = { status: 'success', users: (JSON.parse(body) as { user_ids: string[] }).user_ids };
        service.ops.push(op);
        looks = 0;
        service.onTrigger(op);
        return { detail: 'made up' };
      }
      case '/v2/link/bulk_op':
        return { data: service.showsOps ? service.ops.map(opJson).toReversed() : [] };
      case '/v2/introspect/historical_pull': {
        const one = url.searchParams.get('user_id');
        const from = Number(url.searchParams.get('next_cursor') ?? 0);
        service.askedForPulls += 1;
        const isLook = service.ops.length > 0 && from === 0 && one === null;
        const status = isLook ? service.onLook((looks += 1)) : undefined;
        if (one === null && from === 0) lists += 1;
        const shown = [...service.pulls].filter(([user_id]) =>
          one === null ? !service.hides(user_id, lists) : user_id === one,
        );
        const page = shown.slice(from, from + 50).map(([user_id, meal]) => ({
          user_id,
          provider: { made_up: { pulled: { meal } } },
        }));
        const refused = one === null ? status : service.onAsked(one);
        return refused ?? { data: page, next_cursor: from + 50 < shown.length ? String(from + 50) : null };
      }
      case `/v2/summary/meal/${user}`:
        if (!service.meals.has(user)) return 404;
        return {
          meals: idsOf(user).map((meal) => ({
            id: meal,
            user_id: user,
            timestamp: '2026-01-01T08:00:00+00:00',
          })),
        };
      default:
        return 404;
    }
  };
  const url = await serve((request, response) => {
    void text(request).then((body) => {
      const said = answer(new URL(request.url ?? '', 'http://localhost'), body);
      const done = request.method === 'POST' ? 202 : 200;
      response
        .writeHead(typeof said === 'number' ? said : done, { 'content-type': 'application/json' })
        .end(JSON.stringify(said));
    });
  });
  const ids = Array.from({ length: users }, (_, n) => id(n + 1));
  const service: PullingService = {
    env: {
      MILLRACE_SERVICE_BASE_URL: url,
      MILLRACE_SERVICE_API_KEY: 'made-up',
    },
    users: ids,
    ops: [],
    showsOps: true,
    pulls: new Map(),
    meals: new Map(ids.map((user) => [user, 0])),
    onTrigger: () => undefined,
    onLook: () => undefined,
    hides: () => false,
    onAsked: () => undefined,
    askedForPulls: 0,
    mealIds: () => service.users.flatMap(idsOf).toSorted(),
  };
  return service;
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
