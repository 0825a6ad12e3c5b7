import { Lane } from './lane.ts';
import { PROVIDERS, type Throttle } from './providers.ts';
import type { Pulls } from './pulls.ts';
import type { Timers } from './timers.ts';
import type { Users } from './users.ts';

/** Modes: `in_progress` → `success`, once every trigger was handled; `aborted` only by `abort`. */
export interface BulkOp {
  readonly sequence: number;
  readonly teamId: string;
  readonly provider: string;
  status: 'in_progress' | 'success' | 'failure' | 'aborted';
  pending: number;
  processed: number;
  readonly startedAt: string;
  endedAt: string | null;
  /** Resolves when it is over. */
  readonly done: Promise<void>;
}

/** Persistent background operations. Each provider has a lane, so that operations of one provider share its rate. */
export class BulkOps {
  readonly #timers: Timers;
  readonly #users: Users;
  readonly #pulls: Pulls;
  readonly #lanes = new Map<string, Lane>();
  readonly #ops: BulkOp[] = [];
  readonly #endings = new Map<BulkOp, () => void>();

  constructor(timers: Timers, users: Users, pulls: Pulls) {
    this.#timers = timers;
    this.#users = users;
    this.#pulls = pulls;
  }

  /** Enqueues a trigger for each user. Users without a connection to the provider are passed over, and counted. */
  enqueue(teamId: string, provider: string, userIds: readonly string[]): BulkOp {
    const { promise, resolve } = Promise.withResolvers<void>();
    const op: BulkOp = {
      sequence: this.#ops.length + 1,
      teamId,
      provider,
      status: 'in_progress',
      pending: userIds.length,
      processed: 0,
      startedAt: this.#timers.stamp(),
      endedAt: null,
      done: promise,
    };
    this.#ops.push(op);
    this.#endings.set(op, resolve);
    const lane = this.#laneOf(provider);
    for (const id of userIds) lane.push(() => this.#trigger(op, id));
    return op;
  }

  /** Newest first. */
  list(teamId: string): BulkOp[] {
    return this.#ops.filter((op) => op.teamId === teamId).toReversed();
  }

  /** What waits is let go. */
  abort(op: BulkOp): void {
    this.#end(op, 'aborted');
  }

  #trigger(op: BulkOp, userId: string): void {
    if (op.status !== 'in_progress') return;
    op.pending -= 1;
    op.processed += 1;
    const user = this.#users.find(op.teamId, userId);
    if (user?.connections.some(({ provider }) => provider === op.provider) === true) {
      this.#pulls.start(user, op.provider);
    }
    if (op.pending === 0) this.#end(op, 'success');
  }

  #end(op: BulkOp, status: BulkOp['status']): void {
    if (op.status !== 'in_progress') return;
    op.status = status;
    op.endedAt = this.#timers.stamp();
    this.#endings.get(op)?.();
    this.#endings.delete(op);
  }

  #laneOf(provider: string): Lane {
    const throttle: Throttle = PROVIDERS[provider] ?? { kind: 'window', connections: 8, everyMs: 60_000 };
    const lane = this.#lanes.get(provider) ?? new Lane(throttle, this.#timers);
    this.#lanes.set(provider, lane);
    return lane;
  }
}

/** A bulk op as the service shows it: without an id. */
export function bulkOpJson(op: BulkOp): object {
  return {
    type: 'link_bulk_historical_trigger',
    status: op.status,
    provider: op.provider,
    pending: op.pending,
    processed: op.processed,
    started_at: op.startedAt,
    ended_at: op.endedAt,
  };
}
