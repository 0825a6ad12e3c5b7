import { hash } from 'node:crypto';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { AreaQuery } from '../service/labs.ts';
import type { ReadOptions } from '../service/options.ts';
import { CursorList, saysMore, type CursorPage } from '../service/shape.ts';
import { WholeList, type ListPage, type PagePlace } from '../service/whole-list.ts';
import { ElementScanner } from '../../tables/ndjson/elements.ts';

/** Parameters of all resources. Lists may be empty. */
export interface ReferenceQuery {
  readonly users: readonly string[];
  readonly zipCodes: readonly string[];
  readonly labTests: readonly string[];
  readonly addOns: readonly string[];
  readonly jobs: readonly string[];
  readonly labs: readonly string[];
  readonly radius?: AreaQuery['radius'] | undefined;
  readonly labAccount?: string | undefined;
  readonly labSlug?: string | undefined;
  readonly status?: string | undefined;
  readonly interpretation?: string | undefined;
  readonly provider?: string | undefined;
}

/** An answer of the service, an item that it does not have, or a list that may not be whole. */
export type Answer =
  | {
      /** As the service wrote it: rows keep the text of its numbers. */
      readonly text: string;
      /** Columns that are not in the answer. */
      readonly given: Readonly<Record<string, string>>;
    }
  | { readonly missing: string; readonly reason: string }
  | { readonly incomplete: string };

export interface Resource {
  readonly table: string;
  /** The parameter that needs at least one value. */
  readonly needs?: 'users' | 'zipCodes' | 'jobs';
  /** Other parameters. */
  readonly takes?: readonly (keyof ReferenceQuery)[];
  /** All answers, in order. */
  readonly fetch: (service: ServiceClient, query: ReferenceQuery, signal: AbortSignal) => Answers;
}

type Answers = AsyncGenerator<Answer>;

const PAGE = 100;
/** Most users on a page. */
const USERS_PAGE = 500;

/** The resources, by the names of their commands. */
export const RESOURCES: Readonly<Record<string, Resource>> = {
  users: {
    table: 'users',
    takes: ['users'],
    fetch: (service, { users }, signal) =>
      users.length === 0
        ? pages(signal, 'users', USERS_PAGE, ({ offset, size: limit }, options) =>
            service.users.list({ offset, limit }, options),
          )
        : each(signal, 'user', users, (user, options) => service.users.get(user, options)),
  },
  insurance: {
    table: 'insurance',
    needs: 'users',
    fetch: (service, { users }, signal) => {
      const call: CallFor = (user, options) => service.users.latestInsurance(user, options);
      return each(signal, 'insurance of user', users, call, (user) => ({ user_id: user }));
    },
  },
  'lab-tests': {
    table: 'lab_tests',
    fetch: ({ labs }, _query, signal) => once(signal, 'lab tests', (options) => labs.tests(options)),
  },
  markers: {
    table: 'markers',
    takes: ['labTests', 'addOns', 'labSlug'],
    fetch: ({ labs }, { labTests: labTestIds, addOns, labSlug }, signal) => {
      const set = { labTestIds, addOnProviderIds: addOns.length === 0 ? undefined : addOns };
      const isSet = labTestIds.length + addOns.length > 0;
      return pages(signal, 'markers', PAGE, ({ page, size }, options) =>
        isSet
          ? labs.orderSetMarkers(set, { page, size }, options)
          : labs.markers({ page, size, labSlug }, options),
      );
    },
  },
  'lab-accounts': {
    table: 'lab_accounts',
    takes: ['labAccount', 'status'],
    fetch: ({ labs }, { labAccount: labAccountId, status }, signal) =>
      once(signal, 'lab accounts', (options) => labs.accounts({ labAccountId, status }, options)),
  },
  areas: {
    table: 'areas',
    needs: 'zipCodes',
    takes: ['radius', 'labs', 'labAccount'],
    fetch: ({ labs }, { zipCodes, radius, labs: named, labAccount: labAccountId }, signal) => {
      const more = { radius, labAccountId, labs: named.length === 0 ? undefined : named };
      return each(signal, 'area', zipCodes, (zipCode, options) =>
        labs.areaInfo({ zipCode, ...more }, options),
      );
    },
  },
  orders: {
    table: 'orders',
    takes: ['interpretation'],
    fetch: ({ labs }, { interpretation }, signal) =>
      pages(signal, 'orders', PAGE, ({ page, size }, options) =>
        labs.orders({ page, size, interpretation }, options),
      ),
  },
  'parsing-jobs': {
    table: 'parsing_jobs',
    needs: 'jobs',
    fetch: ({ labs }, { jobs }, signal) =>
      each(signal, 'parsing job', jobs, (job, options) => labs.parsingJob(job, options)),
  },
  'bulk-ops': {
    table: 'bulk_ops',
    fetch: ({ bulk }, _query, signal) =>
      cursored(signal, 'bulk operations', (cursor, options) =>
        bulk.listOps({ pageSize: 50, cursor }, options),
      ),
  },
  'historical-pulls': {
    table: 'historical_pulls',
    takes: ['users', 'provider'],
    fetch: async function* ({ pulls }, { users, provider }, signal) {
      for (const userId of users.length === 0 ? [undefined] : users)
        yield* cursored(signal, 'historical pulls', (cursor, options) =>
          pulls.status({ userId, provider, cursor }, options),
        );
    },
  },
};

type CallFor = (id: string, options: ReadOptions) => Promise<object>;

/** A list in pages with numbers or offsets; an item that shifts to a later page comes once. */
async function* pages(
  signal: AbortSignal,
  list: string,
  pageSize: number,
  call: (place: PagePlace, options: ReadOptions) => Promise<object>,
): Answers {
  type Page = ListPage<string> & { readonly text: string };
  const whole = new WholeList<string, Page>(pageSize, async (place) => {
    const { answer, text } = await exactly((options) => call(place, options), signal);
    const [total, size, limit] = ['total', 'size', 'limit'].map((name): unknown => Reflect.get(answer, name));
    const items = elementsOf(text, list);
    // Hashes of the texts: parsed, two large numbers could be equal.
    const keys = items.map((item) => hash('sha256', item, 'base64'));
    return { items, keys, total, full: size ?? limit, more: saysMore(answer), text };
  });
  for await (const { items, page } of whole.pages())
    yield { text: items.length < page.items.length ? `[${items.join(',')}]` : page.text, given: {} };
  if (whole.problem !== null) yield { incomplete: `${list}: ${whole.problem}` };
}

/** A list in pages with cursors. */
async function* cursored(
  signal: AbortSignal,
  list: string,
  call: (cursor: string | undefined, options: ReadOptions) => Promise<CursorPage<unknown>>,
): Answers {
  const whole = new CursorList(async (cursor) => {
    const { answer, text } = await exactly((options) => call(cursor, options), signal);
    return { ...answer, text };
  });
  for await (const { data, text } of whole.pages()) if (data.length > 0) yield { text, given: {} };
  if (whole.problem !== null) yield { incomplete: `${list}: ${whole.problem}` };
}

/** A list in one answer, in `data`. */
async function* once(
  signal: AbortSignal,
  list: string,
  call: (options: ReadOptions) => Promise<{ readonly data: readonly unknown[] }>,
): Answers {
  const { answer, text } = await exactly(call, signal);
  if (answer.data.length > 0) yield { text, given: {} };
  const more = saysMore(answer);
  if (more !== null) yield { incomplete: `${list}: the service says ${more}, and the list has no pages` };
}

/** One answer for each id; an id that the service does not have is reported as missing. */
async function* each(
  signal: AbortSignal,
  what: string,
  ids: readonly string[],
  call: CallFor,
  givenFor: (id: string) => Readonly<Record<string, string>> = () => ({}),
): Answers {
  for (const id of ids) {
    try {
      const { text } = await exactly((options) => call(id, options), signal);
      yield { text: `[${text}]`, given: givenFor(id) };
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
      yield { missing: `${what} ${id}`, reason: error.detail };
    }
  }
}

/** The answer of a call, and its text as the service wrote it. */
async function exactly<T>(
  call: (options: ReadOptions) => Promise<T>,
  signal: AbortSignal,
): Promise<{ readonly answer: T; readonly text: string }> {
  let text = '';
  const answer = await call({ signal, onText: (written) => (text = written) });
  return { answer, text };
}

/** The elements of a document's list, each as the service wrote it. */
function elementsOf(document: string, list: string): string[] {
  const elements: string[] = [];
  const scanner = new ElementScanner({
    containers: [list],
    longest: Infinity,
    onElement: (bytes) => elements.push(bytes.toString()),
    onFault: () => undefined,
  });
  scanner.push(Buffer.from(document));
  scanner.end();
  return elements;
}
