import type { ServiceClient } from '../service/client.ts';
import type { CallOptions } from '../service/options.ts';
import { mkdir } from 'node:fs/promises';
import { RowFiles } from '../ndjson/row-files.ts';
import { shapeText } from '../ndjson/shape-text.ts';
import { withNested } from '../warehouse/tables.ts';

/** What one of the resources is asked for; users for `insurance`, zip codes for `areas`. */
export interface ReferenceQuery {
  readonly users: readonly string[];
  readonly zipCodes: readonly string[];
}

/** One answer of the service, and the columns it cannot fill itself. */
interface Answer {
  readonly document: unknown;
  readonly given: Readonly<Record<string, string>>;
}

interface Resource {
  readonly table: string;
  /** What it needs to be asked for, as a flag. */
  readonly needs: 'users' | 'zipCodes' | null;
  readonly fetch: (
    service: ServiceClient,
    query: ReferenceQuery,
    options: CallOptions,
  ) => AsyncGenerator<Answer>;
}

const PAGE = 100;
const NOTHING_GIVEN = {};

/** The reference data that can be pulled, by the name of its command. */
export const RESOURCES: Readonly<Record<string, Resource>> = {
  markers: {
    table: 'markers',
    needs: null,
    fetch: (service, _query, options) =>
      pages((page) => service.labs.markers({ page, size: PAGE }, options), 'markers'),
  },
  'lab-accounts': {
    table: 'lab_accounts',
    needs: null,
    async *fetch(service, _query, options) {
      yield { document: await service.labs.accounts({}, options), given: NOTHING_GIVEN };
    },
  },
  areas: {
    table: 'areas',
    needs: 'zipCodes',
    async *fetch(service, { zipCodes }, options) {
      for (const zipCode of zipCodes) {
        yield { document: [await service.labs.areaInfo({ zipCode }, options)], given: NOTHING_GIVEN };
      }
    },
  },
  insurance: {
    table: 'insurance',
    needs: 'users',
    async *fetch(service, { users }, options) {
      for (const user of users) {
        yield { document: [await service.users.latestInsurance(user, options)], given: { user_id: user } };
      }
    },
  },
  orders: {
    table: 'orders',
    needs: null,
    fetch: (service, _query, options) =>
      pages((page) => service.orders.list({ page, size: PAGE }, options), 'orders'),
  },
};

/** Every page until one is not full. */
async function* pages(
  fetchPage: (page: number) => Promise<Readonly<Record<string, unknown>>>,
  field: string,
): AsyncGenerator<Answer> {
  for (let page = 1; ; page += 1) {
    const document = await fetchPage(page);
    yield { document, given: NOTHING_GIVEN };
    const items = document[field];
    if (!Array.isArray(items) || items.length < PAGE) return;
  }
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
  await mkdir(output, { recursive: true });
  const tables = withNested(table);
  const files = await RowFiles.open(output, tables);
  const rows: Record<string, number> = Object.fromEntries(tables.map((name) => [name, 0]));
  const unknown = new Set<string>();
  let rejects = 0;
  try {
    for await (const { document, given } of fetch(service, query, { signal })) {
      const shaped = await shapeText(asText(document), {
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

async function* asText(document: unknown): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(document));
}
