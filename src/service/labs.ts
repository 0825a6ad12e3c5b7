import type { CallOptions, ReadOptions } from './options.ts';
import { oneOf, text, uuid, wholeNumber } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { listFrom, objectFrom, type Open, type Unknown } from './shape.ts';
import type { Call, Transport } from './transport.ts';

export interface Loinc extends Unknown {
  readonly id: number;
  readonly name: string;
  readonly slug: string;
  readonly code: string;
  readonly unit: string | null;
}

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
  readonly expected_results?: readonly (Unknown & { readonly loinc?: Loinc })[];
}

export interface MarkerPage extends Unknown {
  readonly markers: readonly Marker[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
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
  readonly phlebotomy: {
    readonly is_served: boolean;
    readonly providers: readonly {
      readonly name: string;
      readonly tier: readonly Open<'appointment-ready' | 'appointment-request'>[];
    }[];
  };
  /** Lab identifier → centers near by; the radius is text, in miles. */
  readonly central_labs: Readonly<
    Record<
      string,
      {
        readonly patient_service_centers: {
          readonly within_radius: number;
          readonly radius: string;
          readonly capabilities?: readonly Open<'stat'>[];
        };
      }
    >
  >;
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
export class Labs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Markers of order sets; a reading operation although it is a POST. */
  async orderSetMarkers(
    set: OrderSet,
    paging: Paging = {},
    { signal }: CallOptions = {},
  ): Promise<MarkerPage> {
    const json = {
      ...(set.labTestIds === undefined ? {} : { lab_test_ids: texts('labTestIds', set.labTestIds) }),
      ...(set.addOnProviderIds === undefined
        ? {}
        : { add_on: { provider_ids: texts('addOnProviderIds', set.addOnProviderIds) } }),
    };
    const query = pagingQuery(paging);
    const call: Call = { method: 'POST', path: 'listOrderSetMarkers', query, json, idempotent: true, signal };
    return listFrom<MarkerPage>(this.#transport, call, 'markers');
  }

  async markers(
    { labSlug, ...paging }: Paging & { readonly labSlug?: string } = {},
    { signal, onText }: ReadOptions = {},
  ): Promise<MarkerPage> {
    const lab_slug = labSlug === undefined ? undefined : text('labSlug', labSlug);
    const query = { ...pagingQuery(paging), lab_slug };
    const call: Call = { method: 'GET', path: 'markers', query, idempotent: true, signal, onText };
    return listFrom<MarkerPage>(this.#transport, call, 'markers');
  }

  async accounts(
    filter: { readonly labAccountId?: string; readonly status?: LabAccount['status'] } = {},
    { signal, onText }: ReadOptions = {},
  ): Promise<{ readonly data: readonly LabAccount[] }> {
    const { labAccountId, status } = filter;
    const query = {
      lab_account_id: labAccountId === undefined ? undefined : uuid('labAccountId', labAccountId),
      status: status === undefined ? undefined : text('status', status),
    };
    const call: Call = { method: 'GET', path: 'labAccounts', query, idempotent: true, signal, onText };
    return listFrom<{ readonly data: readonly LabAccount[] }>(this.#transport, call, 'data');
  }

  /** Phlebotomy and patient service centers near a zip code. */
  async areaInfo(area: AreaQuery, { signal, onText }: ReadOptions = {}): Promise<AreaInfo> {
    if (!/^\d{5}$/.test(area.zipCode)) throw new ServiceInputError('zipCode', 'must be exactly five digits');
    const { labAccountId, radius, labs, lab } = area;
    const query = {
      zip_code: area.zipCode,
      radius: radius === undefined ? undefined : oneOf('radius', radius, RADII),
      labs: labs === undefined ? undefined : texts('labs', labs),
      lab: lab === undefined ? undefined : text('lab', lab),
      lab_account_id: labAccountId === undefined ? undefined : uuid('labAccountId', labAccountId),
    };
    const call: Call = { method: 'GET', path: 'areaInfo', query, idempotent: true, signal, onText };
    return objectFrom<AreaInfo>(this.#transport, call);
  }
}

/** Query fields of a page. @throws ServiceInputError */
export function pagingQuery({ page, size }: Paging): { page?: number; size?: number } {
  return {
    ...(page === undefined ? {} : { page: wholeNumber('page', page, 1, Number.MAX_SAFE_INTEGER) }),
    ...(size === undefined ? {} : { size: wholeNumber('size', size, 1, 100) }),
  };
}

function texts(parameter: string, values: readonly string[]): readonly string[] {
  return values.map((value, index) => text(`${parameter}[${index}]`, value));
}
