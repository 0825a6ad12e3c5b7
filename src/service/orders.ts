import { randomUUID } from 'node:crypto';
import type { CallOptions, ReadOptions } from './options.ts';
import { day, text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { pagingQuery, type Paging } from './labs.ts';
import { listFrom, objectFrom, type Open, type Unknown } from './shape.ts';
import type { Call, Transport } from './transport.ts';

/** Most of an order is not documented; `status` may hold values that are not known yet. */
export interface Order extends Unknown {
  readonly id?: string;
  readonly interpretation?: Open<'normal' | 'abnormal' | 'critical'> | null;
}

export interface OrderPage extends Unknown {
  readonly orders: readonly Order[];
}

/** What is documented of a new order; `fields` carries the rest as it is, in the service's own names. */
export interface NewOrder {
  readonly userId: string;
  /** Limits panels and markers to the lab of the account. Without it the service finds an account itself. */
  readonly labAccountId?: string;
  /** Up to 1,000 characters; forwarded to the requisition. */
  readonly clinicalNotes?: string;
  /** `INCORRECT_LAB` makes the service find a fresh lab account. */
  readonly updateReason?: Open<'INCORRECT_LAB'>;
  readonly fields?: Unknown;
  /** Orders with the same key are one order. Default: a new key for each call, shared by its attempts. */
  readonly idempotencyKey?: string;
}

/** The limit of clinical comments, in characters. */
const LONGEST_NOTES = 1000;

/** Orders and phlebotomy appointments. */
export class Orders {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Safe to repeat: every attempt carries the same idempotency key. @throws ServiceError, ServiceInputError */
  create(order: NewOrder, options: CallOptions = {}): Promise<Unknown> {
    return this.#place('createOrder', order, options);
  }

  /** Also takes lab accounts that are pending. */
  import(order: NewOrder, options: CallOptions = {}): Promise<Unknown> {
    return this.#place('importOrder', order, options);
  }

  async list(
    { interpretation, ...paging }: Paging & { readonly interpretation?: Order['interpretation'] } = {},
    { signal, onText }: ReadOptions = {},
  ): Promise<OrderPage> {
    const query = { ...pagingQuery(paging), interpretation };
    const call: Call = { method: 'GET', path: 'orders', query, idempotent: true, signal, onText };
    return listFrom<OrderPage>(this.#transport, call, 'orders');
  }

  /**
   * Fourteen days of slots from `startDate` on.
   * @param startDate `YYYY-MM-DD`
   * @param address where the appointment is to be, in the service's own names
   */
  async appointmentAvailability(
    startDate: string,
    address: Unknown = {},
    { signal }: CallOptions = {},
  ): Promise<Unknown> {
    const query = { start_date: day('startDate', startDate) };
    const call: Call = {
      method: 'POST',
      path: 'appointmentAvailability',
      query,
      json: address,
      idempotent: true,
      signal,
    };
    return objectFrom<Unknown>(this.#transport, call);
  }

  async #place(
    path: 'createOrder' | 'importOrder',
    order: NewOrder,
    { signal }: CallOptions,
  ): Promise<Unknown> {
    const { userId, labAccountId, clinicalNotes, updateReason, fields, idempotencyKey } = order;
    if (idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
      throw new ServiceInputError('idempotencyKey', 'must be 1 to 255 visible ASCII characters');
    }
    const json = {
      ...fields,
      user_id: uuid('userId', userId),
      ...(labAccountId === undefined ? {} : { lab_account_id: uuid('labAccountId', labAccountId) }),
      ...(clinicalNotes === undefined
        ? {}
        : { clinical_notes: text('clinicalNotes', clinicalNotes, LONGEST_NOTES) }),
      ...(updateReason === undefined ? {} : { update_reason: text('updateReason', updateReason) }),
    };
    const headers = { [this.#transport.options.idempotencyHeader]: idempotencyKey ?? randomUUID() };
    return objectFrom<Unknown>(this.#transport, {
      method: 'POST',
      path,
      json,
      headers,
      idempotent: true,
      signal,
    });
  }
}
