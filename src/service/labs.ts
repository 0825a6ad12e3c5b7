import type { ReadOptions } from './options.ts';
import { oneOf, text, uuid, wholeNumber } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { Group, type List, type Open, type Unknown } from './shape.ts';

export interface Marker extends Unknown {
  readonly id: number;
  readonly name: string;
  readonly slug: string;
  readonly description?: string;
  readonly lab_id: number;
  readonly provider_id: string;
  readonly type: Open<'biomarker'>;
  readonly unit?: string | null;
  /** Text: it can be something else than a number. */
  readonly price?: string;
}

export interface MarkerPage extends Unknown {
  readonly markers: readonly Marker[];
  readonly total: number | null;
  readonly page: number;
  readonly size: number;
}

/** A test (an order set) that can be ordered. */
export interface LabTest extends Unknown {
  readonly id: string;
  readonly slug?: string;
  readonly name?: string;
  readonly markers?: readonly Marker[] | null;
}

export interface LabAccount extends Unknown {
  readonly id: string;
  readonly lab: string;
  readonly status: Open<'active' | 'pending' | 'suspended'>;
  /** Goes into every order placed under the account. */
  readonly default_clinical_notes?: string | null;
  readonly team_id_allowlist?: readonly string[];
  readonly org_id?: string;
}

export interface AreaInfo extends Unknown {
  readonly zip_code: string;
  readonly phlebotomy: Unknown & { readonly is_served: boolean };
  /** Centers near by, by the identifier of the lab. */
  readonly central_labs: Unknown;
}

/** Miles that the service knows; this set is closed. */
export const RADII = [10, 20, 25, 50, 100] as const;

export interface AreaQuery {
  /** Exactly five digits. */
  readonly zipCode: string;
  /** Miles, default 25. */
  readonly radius?: (typeof RADII)[number];
  /** Lab identifiers to look for service centers of. */
  readonly labs?: readonly string[];
  /** @deprecated use `labs` */
  readonly lab?: string;
  readonly labAccountId?: string;
}

export interface OrderSet {
  readonly labTestIds?: readonly string[];
  /** Identifiers at the lab that are added to the order set. */
  readonly addOnProviderIds?: readonly string[];
}

export interface Paging {
  /** From 1, default 1. */
  readonly page?: number;
  /** 1–100, default 50. */
  readonly size?: number;
}

/** Markers, lab accounts and coverage of an area. */
export class Labs extends Group {
  /** Markers of order sets; a reading operation although it is a POST. */
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
    { labSlug, ...paging }: Paging & { readonly labSlug?: string } = {},
    options: ReadOptions = {},
  ): Promise<MarkerPage> {
    const query = { ...pagingQuery(paging), lab_slug: text('labSlug', labSlug) };
    return this.readList<MarkerPage>({ method: 'GET', path: 'markers', query, ...options }, 'markers');
  }

  /** The tests that the team can order. */
  async tests(options: ReadOptions = {}): Promise<List<LabTest>> {
    return this.readData<LabTest>({ method: 'GET', path: 'labTests', ...options });
  }

  /** A team without accounts can be answered without a list. */
  async accounts(
    filter: { readonly labAccountId?: string; readonly status?: LabAccount['status'] } = {},
    options: ReadOptions = {},
  ): Promise<List<LabAccount>> {
    const query = {
      lab_account_id: uuid('labAccountId', filter.labAccountId),
      status: text('status', filter.status),
    };
    return this.readData<LabAccount>({ method: 'GET', path: 'labAccounts', query, ...options });
  }

  /** Phlebotomy and patient service centers near a zip code. */
  async areaInfo(area: AreaQuery, options: ReadOptions = {}): Promise<AreaInfo> {
    if (!/^\d{5}$/.test(area.zipCode)) throw new ServiceInputError('zipCode', 'must be exactly five digits');
    const query = {
      zip_code: area.zipCode,
      radius: oneOf('radius', area.radius, RADII),
      labs: texts('labs', area.labs),
      lab: text('lab', area.lab),
      lab_account_id: uuid('labAccountId', area.labAccountId),
    };
    return this.readObject<AreaInfo>({ method: 'GET', path: 'areaInfo', query, ...options });
  }
}

/** Query fields of a page. @throws ServiceInputError */
export function pagingQuery({ page, size }: Paging): Record<'page' | 'size', number | undefined> {
  return { page: wholeNumber('page', page, 1), size: wholeNumber('size', size, 1, 100) };
}

function texts<T extends readonly string[] | undefined>(parameter: string, values: T): T {
  for (const [index, value] of values?.entries() ?? []) text(`${parameter}[${index}]`, value);
  return values;
}
