import type { CallOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { everyItem, listFrom, type CursorPage, type Open, type Unknown } from './shape.ts';
import type { Transport } from './transport.ts';

/** How far the pull of one resource is. `retrying` is a temporary failure, `failure` a permanent one. */
export interface PullStatus extends Unknown {
  readonly status: Open<'scheduled' | 'in_progress' | 'retrying' | 'success' | 'failure'>;
  /** ISO 8601. */
  readonly range_start?: string | null;
  readonly range_end?: string | null;
  /** 0 with `success` is a success: there was nothing. */
  readonly days_with_data?: number | null;
  /** What went wrong, in any shape; null unless it failed or retries. */
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
        /** Resources that nobody asked for, or the provider does not have. */
        readonly not_pulled?: readonly string[];
      }
    >
  >;
}

export interface PullQuery {
  readonly userId?: string;
  readonly provider?: string;
  /** Users a page, 1–50. Default 50. */
  readonly userLimit?: number;
  readonly cursor?: string;
}

/** Status of historical pulls. */
export class Pulls {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One page of users. @throws ServiceError, ServiceInputError */
  async status(query: PullQuery = {}, { signal }: CallOptions = {}): Promise<CursorPage<UserPulls>> {
    const { userId, provider, userLimit, cursor } = query;
    return listFrom<CursorPage<UserPulls>>(
      this.#transport,
      {
        method: 'GET',
        path: 'historicalPulls',
        query: {
          user_id: userId === undefined ? undefined : uuid('userId', userId),
          provider: provider === undefined ? undefined : text('provider', provider),
          user_limit: userLimit === undefined ? undefined : wholeNumber('userLimit', userLimit, 1, 50),
          next_cursor: cursor,
        },
        idempotent: true,
        signal,
      },
      'data',
    );
  }

  /** Every user's pulls, page after page. */
  users(query: Omit<PullQuery, 'cursor'> = {}, options: CallOptions = {}): AsyncGenerator<UserPulls> {
    const operation = this.#transport.operation({ method: 'GET', path: 'historicalPulls', idempotent: true });
    return everyItem(operation, (cursor) =>
      this.status(cursor === undefined ? query : { ...query, cursor }, options),
    );
  }
}
