import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { detailOf } from './detail.ts';
import { Group, type CursorPage, type Open, type Unknown } from './shape.ts';
import { refusePage, type Call } from './transport.ts';

export interface BulkTrigger {
  /** Any number of users, each a UUID. */
  readonly userIds: readonly string[];
  /** Provider identifier; a non-exhaustive enum. */
  readonly provider: string;
  /** Wait up to 20 seconds for the bulk op. Default false. */
  readonly waitForCompletion?: boolean;
  /** Default: the team of the key. */
  readonly teamId?: string;
}

/**
 * `completed`: 200, the triggers were processed while we waited. `accepted`: 202, they are queued, also after a wait of
 * 20 seconds in vain: follow the bulk op. Neither says that data has landed.
 */
export interface BulkTriggered {
  readonly outcome: 'completed' | 'accepted';
  readonly status: number;
  /** The answer's `detail` in one line; null when the body was empty. */
  readonly detail: string | null;
}

/** Progress of one background operation. It has no id: ours is known by type, provider and start. */
export interface BulkOp extends Unknown {
  readonly type: Open<'link_bulk_historical_trigger' | 'link_bulk_import'>;
  readonly status: Open<'in_progress' | 'success' | 'failure' | 'aborted'>;
  readonly provider: string;
  /** Connections that wait, and that were handled. */
  readonly pending: number;
  readonly processed: number;
  /** ISO 8601. */
  readonly started_at: string;
  readonly ended_at?: string | null;
}

export interface BulkOpQuery {
  /** 1–50, default 10. */
  readonly pageSize?: number;
  readonly cursor?: string;
  readonly teamId?: string;
}

/** The longest wait of the service, and some room for the way. */
const PATIENCE = 30_000;

/** Bulk triggers of historical pulls, and the background operations they become. */
export class Bulk extends Group {
  /**
   * Enqueues a historical pull for each user's connection to the provider. Not repeated after a time-out or a lost
   * connection, since the triggers may be queued already: see `maybeApplied` of the error, and the list of bulk ops.
   * @throws ServiceError, ServiceInputError
   */
  async trigger(trigger: BulkTrigger, options: CallOptions = {}): Promise<BulkTriggered> {
    const { userIds, provider, waitForCompletion = false, teamId } = trigger;
    if (userIds.length === 0) throw new ServiceInputError('userIds', 'must not be empty');
    for (const [index, user] of userIds.entries()) uuid(`userIds[${index}]`, user);
    const call = { method: 'POST', path: 'bulkTrigger' } as const;
    const { status, text: body } = await this.transport.answer({
      ...call,
      query: { team_id: teamOf(teamId) },
      json: {
        user_ids: userIds,
        provider: text('provider', provider),
        wait_for_completion: waitForCompletion,
      },
      patienceMs: waitForCompletion ? PATIENCE : 0,
      ...options,
    });
    refusePage(this.transport.operation(call), status, body);
    return { outcome: status === 200 ? 'completed' : 'accepted', status, detail: readDetail(body) };
  }

  /** One page, newest first. @throws ServiceError, ServiceInputError */
  async listOps(query: BulkOpQuery = {}, options: ReadOptions = {}): Promise<CursorPage<BulkOp>> {
    return this.readPage<BulkOp>(listCall(query, options));
  }

  /** Every bulk op, page after page, newest first. Stop when you have seen enough. */
  ops(query: Omit<BulkOpQuery, 'cursor'> = {}, options: CallOptions = {}): AsyncGenerator<BulkOp> {
    return this.everyItem(listCall(query, options));
  }
}

function listCall({ pageSize, cursor, teamId }: BulkOpQuery, options: CallOptions): Call {
  const query = {
    page_size: wholeNumber('pageSize', pageSize, 1, 50),
    next_cursor: cursor,
    team_id: teamOf(teamId),
  };
  return { method: 'GET', path: 'bulkOps', query, ...options };
}

function teamOf(teamId: string | undefined): string | undefined {
  // The service's own word for the team of the key.
  return teamId === 'infer_from_context' ? teamId : uuid('teamId', teamId);
}

/** The body may be empty, an object with `detail`, or something else; none of that makes a success a failure. */
function readDetail(body: string): string | null {
  if (body.trim() === '') return null;
  try {
    return detailOf(JSON.parse(body));
  } catch {
    return detailOf(body);
  }
}
