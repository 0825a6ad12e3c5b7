import { serve } from '../support/listen.ts';

/** Instead of what a request would be answered with: a body with status 200, or a status. */
type Instead = string | number | null;

/** A service of made-up users and meals that says what it is told to, in plain HTTP. */
export interface StandIn {
  readonly url: string;
  readonly env: Record<string, string>;
  readonly users: string[];
  /** Ids of the meals of these users, or of all. Sorted. */
  mealIds(users?: readonly string[]): string[];
  /** Asked before each answer. */
  instead: (path: string, user: string) => Instead | Promise<Instead>;
  /** Requests for meals so far, by user. */
  readonly asked: Map<string, number>;
}

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

const dayOf = (n: number): string => `2026-01-${String((n % 31) + 1).padStart(2, '0')}`;

/** Users with a meal a day of January 2026 each, as many as `meals`, with two foods in it. */
export async function standIn(options: {
  readonly users: number;
  readonly meals?: number;
}): Promise<StandIn> {
  const meals = options.meals ?? 5;
  const users = Array.from({ length: options.users }, (_, n) => id(n + 1));
  const idsOf = (user: string): string[] =>
    Array.from({ length: meals }, (_, n) => `${user.slice(-4)}-${String(n).padStart(4, '0')}`);
  const documentOf = (user: string, from: string, to: string): string => {
    const data = { bread: { energy: { unit: 'kcal', value: 90 } }, tea: {} };
    const found = idsOf(user).flatMap((meal, n) => {
      const timestamp = `${dayOf(n)}T08:00:00+00:00`;
      return dayOf(n) >= from && dayOf(n) <= to ? [{ id: meal, user_id: user, timestamp, data }] : [];
    });
    return JSON.stringify({ meals: found });
  };
  const asked = new Map<string, number>();
  const answer = async (url: URL): Promise<string | number> => {
    const [, user = ''] = /^\/v2\/summary\/meal\/(.+)$/.exec(url.pathname) ?? [];
    if (user !== '') asked.set(user, (asked.get(user) ?? 0) + 1);
    const other = await service.instead(url.pathname, user);
    if (other !== null) return other;
    if (url.pathname === '/v2/user') {
      const offset = Number(url.searchParams.get('offset') ?? 0);
      const page = users.slice(offset).map((user_id) => ({ user_id }));
      return JSON.stringify({ users: page, total: users.length, offset, limit: 500 });
    }
    const [from, to] = ['start_date', 'end_date'].map((name) =>
      (url.searchParams.get(name) ?? '').slice(0, 10),
    );
    return users.includes(user) ? documentOf(user, from ?? '', to ?? '') : 404;
  };
  const url = await serve((request, response) => {
    void answer(new URL(request.url ?? '', 'http://localhost')).then((body) => {
      const status = typeof body === 'number' ? body : 200;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'number' ? '{"detail":"made up"}' : body);
    });
  });
  const service: StandIn = {
    url,
    env: { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' },
    users,
    mealIds: (of = users) => of.flatMap(idsOf).toSorted(),
    instead: () => null,
    asked,
  };
  return service;
}
