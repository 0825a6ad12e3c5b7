import { isRecord } from '../../lib/parsed.ts';
import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { Group, type CursorPage, type Open, type Unknown } from './shape.ts';
import { type Call, refuseHtml } from './transport.ts';
import { ServiceInputError } from './errors.ts';

/** Status of the pull of one resource. `retrying` is a temporary failure, `failure` a permanent one. */
export interface PullStatus extends Unknown {
  readonly status: Open<'scheduled' | 'in_progress' | 'retrying' | 'success' | 'failure'>;
  /** In any shape; null unless it failed or retries. */
  readonly error_details?: unknown;
}

/** The pulls of one user: provider → resource → status. */
export interface UserPulls extends Unknown {
  readonly user_id: string;
  readonly provider: Readonly<
    Record<
      string,
      Unknown & {
        readonly pulled: Readonly<Record<string, PullStatus>>;
        /** Resources that were not asked for, or that the provider does not have. */
        readonly not_pulled?: readonly string[] | null;
      }
    >
  >;
}

interface PullQuery {
  readonly userId?: string | undefined;
  readonly provider?: string | undefined;
  /** Users a page, 1–50. Default 50. */
  readonly userLimit?: number;
  readonly cursor?: string | undefined;
}

/** Status of historical pulls. */
export class Pulls extends Group {
  /** One page of users. @throws ServiceError, ServiceInputError */
  async status(query: PullQuery = {}, options: ReadOptions = {}): Promise<CursorPage<UserPulls>> {
    const call = callOf(query, options);
    const page = await this.readPage<UserPulls>(call);
    for (const item of page.data) this.#check(call, item);
    return page;
  }

  /** Every user's pulls, page after page. @throws as `status` */
  async *users(query: Omit<PullQuery, 'cursor'> = {}, options: CallOptions = {}): AsyncGenerator<UserPulls> {
    const call = callOf(query, options);
    for await (const item of this.everyItem<UserPulls>(call)) {
      this.#check(call, item);
      yield item;
    }
  }

  /** Without them no pull would be shown, as if none had been made. @throws ServiceError answer_malformed */
  #check(call: Call, item: unknown): void {
    const { user_id: user, provider } = Object(item) as Partial<Record<keyof UserPulls, unknown>>;
    if (typeof user !== 'string')
      throw this.transport.malformed(call, 'an item of the answer has no user_id');
    const lacks = !isRecord(provider)
      ? 'provider'
      : Object.keys(provider).find((name) => !isRecord(Object(provider[name])['pulled']));
    if (lacks !== undefined)
      throw this.transport.malformed(
        call,
        `the pulls of ${user} have no ${lacks}${isRecord(provider) ? '.pulled' : ''}`,
      );
  }
}

function callOf({ userId, provider, userLimit, cursor }: PullQuery, options: CallOptions): Call {
  const query = {
    user_id: uuid('userId', userId),
    provider: text('provider', provider),
    user_limit: wholeNumber('userLimit', userLimit, 1, 50),
    next_cursor: cursor,
  };
  return { method: 'GET', path: 'historicalPulls', query, ...options };
}

/** A background operation. It has no id. */
export interface BulkOp extends Unknown {
  readonly type: Open<'link_bulk_historical_trigger' | 'link_bulk_import'>;
  readonly status: Open<'in_progress' | 'success' | 'failure' | 'aborted'>;
  readonly provider: string;
  /** Connections that wait, and that are done. */
  readonly pending: number;
  readonly processed: number;
  /** ISO 8601. */
  readonly started_at: string;
  readonly ended_at?: string | null;
}

interface BulkOpQuery {
  /** 1–50, default 10. */
  readonly pageSize?: number;
  readonly cursor?: string | undefined;
}

/** Bulk triggers of historical pulls, and the background operations they become. */
export class Bulk extends Group {
  /**
   * Queues a historical pull for each user's connection to the provider. Not retried after a time-out or a lost connection: the
   * triggers may be queued already (`maybeApplied` of the error).
   * @returns `completed` when all triggers were processed, `accepted` when they are queued; neither says that data is there
   * @throws ServiceError, ServiceInputError
   */
  async trigger(
    { userIds, provider }: { readonly userIds: readonly string[]; readonly provider: string },
    options: CallOptions = {},
  ): Promise<'completed' | 'accepted'> {
    if (userIds.length === 0) throw new ServiceInputError('userIds', 'must not be empty');
    for (const [index, user] of userIds.entries()) uuid(`userIds[${index}]`, user);
    const call = { method: 'POST', path: 'bulkTrigger' } as const;
    const json = { user_ids: userIds, provider: text('provider', provider), wait_for_completion: false };
    // The body may be empty, or anything but HTML.
    const { status, text: body } = await this.transport.answer({ ...call, json, ...options });
    refuseHtml(this.transport.operation(call), status, body);
    return status === 200 ? 'completed' : 'accepted';
  }

  /** One page, newest first. @throws ServiceError, ServiceInputError */
  async listOps(query: BulkOpQuery = {}, options: ReadOptions = {}): Promise<CursorPage<BulkOp>> {
    return this.readPage<BulkOp>(listCall(query, options));
  }

  /** Every bulk op, page after page, newest first. */
  ops(query: Omit<BulkOpQuery, 'cursor'> = {}, options: CallOptions = {}): AsyncGenerator<BulkOp> {
    return this.everyItem(listCall(query, options));
  }
}

function listCall({ pageSize, cursor }: BulkOpQuery, options: CallOptions): Call {
  const query = { page_size: wholeNumber('pageSize', pageSize, 1, 50), next_cursor: cursor };
  return { method: 'GET', path: 'bulkOps', query, ...options };
}
