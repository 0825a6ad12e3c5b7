import { serve } from '../../support/listen.ts';
import { id } from './stand-in.ts';

export type Item = Readonly<Record<string, unknown>>;

/** What the service answers for a path instead of its data: a status, a body, or null for the data. */
type Instead = (path: string, cursor: string | null) => number | string | null;

/** A service in plain HTTP that has summaries and series of users, and pulls as the test sets them. */
export interface DataService {
  readonly env: Record<string, string>;
  readonly users: readonly string[];
  /** Items by `user resource`: a summary's have `calendar_date`, a series' are samples with `timestamp`. */
  readonly items: Map<string, Item[]>;
  /** What the list of pulls says of a provider of a user. */
  readonly pulls: Map<string, object>;
  instead: Instead;
  /** Called before each answer. */
  onRequest: (path: string) => void;
  /** Paths with queries, in order. */
  readonly asked: string[];
}

export const SOURCE = { provider: 'made_up', type: 'watch', slug: 'made_up' };

/** @param page samples of a page */
export async function dataService(count: number, page = 4): Promise<DataService> {
  const users = Array.from({ length: count }, (_, n) => id(n + 1));
  const answer = (url: URL): object | number | string => {
    const { pathname, searchParams: query } = url;
    const cursor = query.get('cursor');
    const [from = '', to = '9'] = ['start_date', 'end_date'].map((name) => query.get(name)?.slice(0, 10));
    const instead = service.instead(pathname, cursor);
    if (instead !== null) return instead;
    if (pathname === '/v2/user')
      return { users: users.map((user_id) => ({ user_id })), total: count, offset: 0, limit: 500 };
    if (pathname === '/v2/introspect/historical_pull')
      return { data: [...service.pulls].map(([user_id, made_up]) => ({ user_id, provider: { made_up } })) };
    const [, summary = '', eater = ''] = /^\/v2\/summary\/(\w+)\/(.+)$/.exec(pathname) ?? [];
    const [, user = '', series = ''] = /^\/v2\/timeseries\/(.+)\/(\w+)\/grouped$/.exec(pathname) ?? [];
    const inRange = (service.items.get(`${eater || user} ${summary || series}`) ?? []).filter((item) => {
      const day = String(item['calendar_date'] ?? item['timestamp']).slice(0, 10);
      return day >= from && day <= to;
    });
    if (summary === 'profile') return inRange[0] ?? service.items.get(`${eater} profile`)?.[0] ?? 404;
    if (summary !== '') return { [summary === 'meal' ? 'meals' : summary]: inRange };
    if (series === '') return 404;
    const at = Number(cursor ?? 0);
    const data = inRange.slice(at, at + page);
    const groups = data.length === 0 ? {} : { made_up: [{ source: SOURCE, data }] };
    const next = at + page < inRange.length ? String(at + page) : null;
    return cursor === null ? { next_cursor: next, groups } : { groups, next };
  };
  const url = await serve((request, response) => {
    const asked = new URL(request.url ?? '', 'http://localhost');
    service.asked.push(request.url ?? '');
    service.onRequest(asked.pathname);
    const said = answer(asked);
    response.writeHead(typeof said === 'number' ? said : 200, { 'content-type': 'application/json' });
    response.end(typeof said === 'string' ? said : JSON.stringify(said));
  });
  const service: DataService = {
    env: { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' },
    users,
    items: new Map(),
    pulls: new Map(),
    instead: () => null,
    onRequest: () => undefined,
    asked: [],
  };
  return service;
}

/** Sleep of the first days of January, one each. */
export function sleepOf(user: string, days: number): Item[] {
  return Array.from({ length: days }, (_, n) => {
    const calendar_date = `2026-01-${String(n + 1).padStart(2, '0')}`;
    const own = { id: `${user.slice(-4)}-sleep-${n + 1}`, date: `${calendar_date}T00:00:00+00:00` };
    return { ...own, user_id: user, calendar_date, type: 'long_sleep', duration: 100 + n, source: SOURCE };
  });
}

/** Samples of the first days of January, one each. */
export function samplesOf(days: number): Item[] {
  return Array.from({ length: days }, (_, n) => {
    return {
      timestamp: `2026-01-${String(n + 1).padStart(2, '0')}T08:00:00+00:00`,
      unit: 'bpm',
      value: 60 + n,
    };
  });
}
