import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { Group, type CursorPage, type Open, type Unknown } from './shape.ts';
import type { Call } from './transport.ts';

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

interface PullQuery {
  readonly userId?: string;
  readonly provider?: string;
  /** Users a page, 1–50. Default 50. */
  readonly userLimit?: number;
  readonly cursor?: string;
}

/** Status of historical pulls. */
export class Pulls extends Group {
  /** One page of users. @throws ServiceError, ServiceInputError */
  async status(query: PullQuery = {}, options: ReadOptions = {}): Promise<CursorPage<UserPulls>> {
    return this.readPage<UserPulls>(callOf(query, options));
  }

  /** Every user's pulls, page after page. */
  users(query: Omit<PullQuery, 'cursor'> = {}, options: CallOptions = {}): AsyncGenerator<UserPulls> {
    return this.everyItem(callOf(query, options));
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
