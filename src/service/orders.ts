import { randomUUID } from 'node:crypto';
import type { CallOptions, ReadOptions } from './options.ts';
import { day, text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { pagingQuery, type Paging } from './labs.ts';
import { Group, type Open, type Unknown } from './shape.ts';

/** Of an order only the interpretation is documented for sure. */
export interface Order extends Unknown {
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
export class Orders extends Group {
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
    options: ReadOptions = {},
  ): Promise<OrderPage> {
    const query = { ...pagingQuery(paging), interpretation };
    return this.readList<OrderPage>({ method: 'GET', path: 'orders', query, ...options }, 'orders');
  }

  /**
   * Fourteen days of slots from `startDate` on.
   * @param startDate `YYYY-MM-DD`
   * @param address where the appointment is to be, in the service's own names
   */
  async appointmentAvailability(
    startDate: string,
    address: Unknown = {},
    options: CallOptions = {},
  ): Promise<Unknown> {
    const query = { start_date: day('startDate', startDate) };
    const call = { method: 'POST', path: 'appointmentAvailability', idempotent: true } as const;
    return this.readObject<Unknown>({ ...call, query, json: address, ...options });
  }

  async #place(path: 'createOrder' | 'importOrder', order: NewOrder, options: CallOptions): Promise<Unknown> {
    const { idempotencyKey: key = randomUUID() } = order;
    if (!/^[\x21-\x7e]{1,255}$/.test(key))
      throw new ServiceInputError('idempotencyKey', 'must be 1 to 255 visible ASCII characters');
    const known = {
      user_id: uuid('userId', order.userId),
      lab_account_id: uuid('labAccountId', order.labAccountId),
      clinical_notes: text('clinicalNotes', order.clinicalNotes, LONGEST_NOTES),
      update_reason: text('updateReason', order.updateReason),
    };
    const given = Object.entries(known).filter(([, value]) => value !== undefined);
    const json = { ...order.fields, ...Object.fromEntries(given) };
    const headers = { [this.transport.options.idempotencyHeader]: key };
    return this.readObject<Unknown>({ method: 'POST', path, json, headers, idempotent: true, ...options });
  }
}
