import type { ReadOptions } from './options.ts';
import { oneOf, text, uuid, wholeNumber } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { Group, type List, type Open, type Unknown } from './shape.ts';

type MarkerPage = Unknown & { readonly markers: readonly Unknown[] };

type OrderPage = Unknown & { readonly orders: readonly Unknown[] };

type Interpretation = Open<'normal' | 'abnormal' | 'critical'>;

type AccountStatus = Open<'active' | 'pending' | 'suspended'>;

type AreaInfo = Unknown & {
  /** Centers, by the identifier of the lab. */
  readonly central_labs: Unknown;
};

/** Miles; a closed set. */
export const RADII = [10, 20, 25, 50, 100] as const;

export interface AreaQuery {
  /** Exactly five digits. */
  readonly zipCode: string;
  /** Miles, default 25. */
  readonly radius?: (typeof RADII)[number] | undefined;
  /** Identifiers of the labs whose service centers are wanted. */
  readonly labs?: readonly string[] | undefined;
  readonly labAccountId?: string | undefined;
}

interface OrderSet {
  readonly labTestIds?: readonly string[];
  /** Identifiers at the lab of markers to add to the order set. */
  readonly addOnProviderIds?: readonly string[] | undefined;
}

interface Paging {
  /** From 1, default 1. */
  readonly page?: number;
  /** 1–100, default 50. */
  readonly size?: number;
}

/** Lab tests: markers, accounts, coverage of an area, orders, and reports that are parsed. */
export class Labs extends Group {
  /** Markers of order sets; only reads, although it is a POST. */
  async orderSetMarkers(set: OrderSet, paging: Paging = {}, options: ReadOptions = {}): Promise<MarkerPage> {
    const added = texts('addOnProviderIds', set.addOnProviderIds);
    const json = {
      lab_test_ids: texts('labTestIds', set.labTestIds),
      add_on: added === undefined ? undefined : { provider_ids: added },
    };
    const call = { method: 'POST', path: 'listOrderSetMarkers', idempotent: true } as const;
    return this.readList<MarkerPage>({ ...call, query: pagingQuery(paging), json, ...options }, 'markers');
  }

  async markers(
    { labSlug, ...paging }: Paging & { readonly labSlug?: string | undefined } = {},
    options: ReadOptions = {},
  ): Promise<MarkerPage> {
    const query = { ...pagingQuery(paging), lab_slug: text('labSlug', labSlug) };
    return this.readList<MarkerPage>({ method: 'GET', path: 'markers', query, ...options }, 'markers');
  }

  /** The tests that the team can order. */
  async tests(options: ReadOptions = {}): Promise<List<Unknown>> {
    return this.readData<Unknown>({ method: 'GET', path: 'labTests', ...options });
  }

  /** Empty also when the answer for a team without accounts has no list. */
  async accounts(
    filter: { readonly labAccountId?: string | undefined; readonly status?: AccountStatus | undefined } = {},
    options: ReadOptions = {},
  ): Promise<List<Unknown>> {
    const query = {
      lab_account_id: uuid('labAccountId', filter.labAccountId),
      status: text('status', filter.status),
    };
    return this.readData<Unknown>({ method: 'GET', path: 'labAccounts', query, ...options }, true);
  }

  /** Phlebotomy and patient service centers near a zip code. */
  async areaInfo(area: AreaQuery, options: ReadOptions = {}): Promise<AreaInfo> {
    if (!/^\d{5}$/.test(area.zipCode)) throw new ServiceInputError('zipCode', 'must be exactly five digits');
    const query = {
      zip_code: area.zipCode,
      radius: oneOf('radius', area.radius, RADII),
      labs: texts('labs', area.labs),
      lab_account_id: uuid('labAccountId', area.labAccountId),
    };
    return this.readObject<AreaInfo>({ method: 'GET', path: 'areaInfo', query, ...options });
  }

  async orders(
    { interpretation, ...paging }: Paging & { readonly interpretation?: Interpretation | undefined } = {},
    options: ReadOptions = {},
  ): Promise<OrderPage> {
    const query = { ...pagingQuery(paging), interpretation };
    return this.readList<OrderPage>({ method: 'GET', path: 'orders', query, ...options }, 'orders');
  }

  /** Status of the parsing of an uploaded report. */
  async parsingJob(job: string, options: ReadOptions = {}): Promise<Unknown> {
    const parameters = { job_id: text('job', job) };
    return this.readObject<Unknown>({ method: 'GET', path: 'parsingJob', parameters, ...options });
  }
}

/** @throws ServiceInputError */
function pagingQuery({ page, size }: Paging): Record<'page' | 'size', number | undefined> {
  return { page: wholeNumber('page', page, 1), size: wholeNumber('size', size, 1, 100) };
}

function texts<T extends readonly string[] | undefined>(parameter: string, values: T): T {
  for (const [index, value] of values?.entries() ?? []) text(`${parameter}[${index}]`, value);
  return values;
}
