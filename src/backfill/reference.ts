import type { ServiceClient } from '../service/client.ts';
import type { ReadOptions } from '../service/options.ts';
import { RowFiles } from '../ndjson/row-files.ts';
import { shapeText } from '../ndjson/shape-text.ts';
import { TABLES } from '../warehouse/tables.ts';

/** What one of the resources is asked for; users for `insurance`, zip codes for `areas`. */
export interface ReferenceQuery {
  readonly users: readonly string[];
  readonly zipCodes: readonly string[];
}

/** One answer of the service, and the columns it cannot fill itself. */
interface Answer {
  /** Exactly as the service wrote it: the rows keep the text of its numbers. */
  readonly text: string;
  readonly given: Readonly<Record<string, string>>;
}

interface Resource {
  readonly table: string;
  /** What it needs to be asked for, as a flag. */
  readonly needs: 'users' | 'zipCodes' | null;
  readonly fetch: (
    service: ServiceClient,
    query: ReferenceQuery,
    signal: AbortSignal,
  ) => AsyncGenerator<Answer>;
}

const PAGE = 100;

/** The reference data that can be pulled, by the name of its command. */
export const RESOURCES: Readonly<Record<string, Resource>> = {
  markers: paged('markers', ({ labs }, page, options) => labs.markers(page, options)),
  'lab-accounts': paged('lab_accounts', ({ labs }, _page, options) => labs.accounts({}, options)),
  areas: {
    table: 'areas',
    needs: 'zipCodes',
    async *fetch({ labs }, { zipCodes }, signal) {
      for (const zipCode of zipCodes) {
        const { text } = await exactly((options) => labs.areaInfo({ zipCode }, options), signal);
        yield { text: `[${text}]`, given: {} };
      }
    },
  },
  insurance: {
    table: 'insurance',
    needs: 'users',
    async *fetch(service, query, signal) {
      for (const user of query.users) {
        const { text } = await exactly((options) => service.users.latestInsurance(user, options), signal);
        yield { text: `[${text}]`, given: { user_id: user } };
      }
    },
  },
  orders: paged('orders', ({ orders }, page, options) => orders.list(page, options)),
};

type Page = { readonly page: number; readonly size: number };

/** Every page until one is not full; what comes without pages is its only one. */
function paged(
  table: string,
  call: (service: ServiceClient, page: Page, options: ReadOptions) => Promise<object>,
): Resource {
  return {
    table,
    needs: null,
    async *fetch(service, _query, signal) {
      for (let page = 1; ; page += 1) {
        const { answer, text } = await exactly(
          (options) => call(service, { page, size: PAGE }, options),
          signal,
        );
        yield { text, given: {} };
        const { [table]: items } = answer as Readonly<Record<string, unknown>>;
        if (!Array.isArray(items) || items.length < PAGE) return;
      }
    },
  };
}

/** What a call answers, and the same as the service wrote it. */
async function exactly<T>(
  call: (options: ReadOptions) => Promise<T>,
  signal: AbortSignal,
): Promise<{ readonly answer: T; readonly text: string }> {
  let text = '';
  const answer = await call({ signal, onText: (written) => (text = written) });
  return { answer, text };
}

export interface PullSummary {
  readonly rows: Readonly<Record<string, number>>;
  readonly rejects: number;
  readonly unknown_fields: readonly string[];
  readonly files: readonly string[];
}

/**
 * Fetches one kind of reference data into tables: `markers.ndjson` and what is nested in it. The files appear when all
 * of it is there.
 * @throws ServiceError, ServiceInputError, MillraceError folder_unwritable
 */
export async function pullReference(
  service: ServiceClient,
  { table, fetch }: Resource,
  query: ReferenceQuery,
  output: string,
  signal: AbortSignal,
): Promise<PullSummary> {
  const tables = TABLES.withNested(table);
  const files = await RowFiles.open(output, tables);
  const rows: Record<string, number> = Object.fromEntries(tables.map((name) => [name, 0]));
  const unknown = new Set<string>();
  let rejects = 0;
  try {
    for await (const { text, given } of fetch(service, query, signal)) {
      const shaped = await shapeText(chunksOf(text), {
        tables,
        given,
        write: (name, lines) => files.write(name, lines),
        onReject: (reject) => files.reject(JSON.stringify({ ...given, ...reject })),
        onUnknown: (name, path) => unknown.add(`${name}.${path}`),
        signal,
      });
      rejects += shaped.rejects;
      for (const [name, count] of Object.entries(shaped.rows)) rows[name] = (rows[name] ?? 0) + count;
    }
    return { rows, rejects, unknown_fields: [...unknown].toSorted(), files: await files.finish() };
  } catch (error) {
    await files.discard();
    throw error;
  }
}

async function* chunksOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
