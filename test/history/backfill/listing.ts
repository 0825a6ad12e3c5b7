import { join } from 'node:path';
import { serve } from '../../support/listen.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, type Ended } from '../../support/millrace.ts';
import { id } from './stand-in.ts';
import { lines } from './support.ts';

/** Ids by their numbers; the last is not among them. */
export const idsOf = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, n) => id(from + n));

/** A body with status 200, a status, or both. */
export type Answer = object | string | number | readonly [status: number, body: object];

/** A service of plain answers that is given up after so many requests: the environment of commands that ask it. */
export async function answering(answer: (url: URL) => Answer, most = 1000): Promise<Record<string, string>> {
  let requests = 0;
  const url = await serve((request, response) => {
    if ((requests += 1) > most) {
      response.destroy();
      return;
    }
    const said = answer(new URL(request.url ?? '', 'http://localhost'));
    const [status, body] = typeof said === 'number' ? [said, {}] : isPair(said) ? said : [200, said];
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  return { MILLRACE_SERVICE_BASE_URL: url, MILLRACE_SERVICE_API_KEY: 'made-up' };
}

function isPair(answer: object | string | readonly [number, object]): answer is readonly [number, object] {
  return Array.isArray(answer) && typeof answer[0] === 'number';
}

export interface Listing {
  /** Items of a page at most. */
  readonly cap: number;
  /** Whether the service gives pages of its own size, whatever is asked for. */
  readonly fixed?: boolean;
  readonly beside?: (isLast: boolean, size: number) => object;
  /** What it answers behind its last page: no items, 404, 400, or its last page again. */
  readonly behind?: 'nothing' | 404 | 400 | 'last';
  /** Whether it takes every page for the first. */
  readonly isFirst?: boolean;
  /** After each answer that was asked for more than one item: how many there were. */
  readonly onPage?: (pages: number) => void;
}

const MEMBERS: Readonly<Record<string, string>> = {
  '/v2/user': 'users',
  '/orders': 'orders',
  '/v3/lab_tests/markers': 'markers',
};

function rowOf(member: string, one: string): object {
  if (member === 'users') return { user_id: one };
  if (member === 'orders') return { id: one };
  const number = Number(one.slice(-12));
  return { id: number, name: 'made up', slug: one, lab_id: 1, provider_id: one, type: 'biomarker' };
}

/** Users, orders, markers and meals of a service with one list of ids, which may change. */
export function listing(items: readonly string[], options: Listing): (url: URL) => Answer {
  const { cap, fixed = false, beside, behind = 'nothing', isFirst = false, onPage } = options;
  let pages = 0;
  return ({ pathname, searchParams }) => {
    if (pathname.startsWith('/v2/summary/meal/')) return { meals: [] };
    const member = MEMBERS[pathname] ?? '';
    const numberOf = (name: string): number => Number(searchParams.get(name) ?? 0);
    const asked = numberOf('size') || numberOf('limit');
    const size = fixed ? cap : Math.min(asked, cap);
    let from = member === 'users' ? numberOf('offset') : (numberOf('page') - 1) * size;
    if (isFirst) from = 0;
    if (from >= items.length && typeof behind === 'number') return behind;
    if (from >= items.length && behind === 'last') from = Math.floor((items.length - 1) / size) * size;
    const rows = items.slice(from, from + size).map((one) => rowOf(member, one));
    const answer = { [member]: rows, ...beside?.(from + size >= items.length, size) };
    if (asked > 1) onPage?.((pages += 1));
    return answer;
  };
}

export const run = (out: string, env: Record<string, string>, ...args: readonly string[]): Promise<Ended> =>
  millrace([...args, '--out', out, '--json'], { env, cwd: out });

/** Pulls a list, or asks for the history of everybody on it: what came of it, and which ids are there. */
export async function read(
  what: string,
  env: Record<string, string>,
): Promise<{ readonly ended: Ended; readonly ids: string[] }> {
  const out = await temporaryFolder();
  const isBackfill = what === 'backfill';
  const ended = await run(
    out,
    env,
    ...(isBackfill ? [what, '--all-users', '--since', '2026-01-01'] : ['pull', what]),
  );
  const file = isBackfill ? '_backfill' : what.replaceAll('-', '_');
  const rows = ended.code === 0 || ended.code === 3 ? lines(join(out, `${file}.ndjson`)) : [];
  const idOf = ({ user_id: user, id: own }: Record<string, unknown>): string => {
    if (isBackfill || what === 'users') return String(user);
    return what === 'markers' ? id(Number(own)) : String(own);
  };
  return { ended, ids: rows.map(idOf) };
}
