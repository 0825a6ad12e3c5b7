import { getOrMake } from '../lib/get-or-make.ts';
import type { Faults } from './faults.ts';
import { USUAL, type Throttle } from './providers.ts';
import { daysIn, type Pulls } from './pulls.ts';
import type { Timers } from './timers.ts';
import type { Users } from './users.ts';

/** Modes: `in_progress` → `success` after the last trigger; `aborted` by `abort` or a fault, `failure` by a fault. */
export interface BulkOp {
  readonly sequence: number;
  readonly teamId: string;
  readonly provider: string;
  status: 'in_progress' | 'success' | 'failure' | 'aborted';
  pending: number;
  processed: number;
  readonly startedAt: string;
  endedAt: string | null;
  /** Resolves at its end. */
  readonly done: Promise<void>;
  readonly end: () => void;
}

interface BulkOpsOptions {
  readonly timers: Timers;
  readonly users: Users;
  readonly pulls: Pulls;
  readonly faults: Faults;
  readonly throttles: ReadonlyMap<string, Throttle>;
}

/** Bulk operations. Operations of one provider share its lane, and so its rate. */
export class BulkOps {
  readonly #world: BulkOpsOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #ops: BulkOp[] = [];

  constructor(world: BulkOpsOptions) {
    this.#world = world;
  }

  /** Enqueues a trigger for each user. Users without a connection to the provider are counted only. */
  enqueue(teamId: string, provider: string, userIds: readonly string[]): BulkOp {
    const { promise: done, resolve: end } = Promise.withResolvers<void>();
    const op: BulkOp = {
      sequence: this.#ops.length + 1,
      teamId,
      provider,
      status: 'in_progress',
      pending: userIds.length,
      processed: 0,
      startedAt: this.#world.timers.stamp(),
      endedAt: null,
      done,
      end,
    };
    this.#ops.push(op);
    if (this.#fateOf(op) !== 'stuck') {
      const lane = this.#laneOf(provider);
      for (const id of userIds) lane.push({ run: () => this.#trigger(op, id), slowMs: this.#slowMs(op, id) });
    }
    return op;
  }

  /** Newest first. */
  list(teamId: string): BulkOp[] {
    return this.#ops.filter((op) => op.teamId === teamId).toReversed();
  }

  /** Cancels the triggers that wait. */
  abort(op: BulkOp): void {
    this.#end(op, 'aborted');
  }

  /** By how much the days to pull delay a trigger. */
  #slowMs({ teamId, provider }: BulkOp, userId: string): number {
    const user = this.#world.users.find(teamId, userId);
    const days = user === null ? 0 : daysIn(this.#world.pulls.rangeOf(user, provider));
    return Math.max(0, days - MANY_DAYS) * SLOW_MS_PER_DAY;
  }

  #trigger(op: BulkOp, userId: string): void {
    if (op.status !== 'in_progress') return;
    op.pending -= 1;
    op.processed += 1;
    const user = this.#world.users.find(op.teamId, userId);
    if (user?.connections.some(({ provider }) => provider === op.provider) === true) {
      this.#world.pulls.start(user, op.provider);
    }
    const fate = this.#fateOf(op);
    if ((fate === 'aborted' || fate === 'failure') && op.processed >= op.pending) this.#end(op, fate);
    else if (op.pending === 0) this.#end(op, 'success');
  }

  #fateOf({ sequence }: BulkOp): 'stuck' | 'aborted' | 'failure' | 'lucky' {
    const { stuckOps = 0, abortedOps = 0, failedOps = 0 } = this.#world.faults.options;
    if (sequence <= stuckOps) return 'stuck';
    if (sequence <= stuckOps + abortedOps) return 'aborted';
    return sequence <= stuckOps + abortedOps + failedOps ? 'failure' : 'lucky';
  }

  #end(op: BulkOp, status: BulkOp['status']): void {
    if (op.status !== 'in_progress') return;
    op.status = status;
    op.endedAt = this.#world.timers.stamp();
    op.end();
  }

  #laneOf(provider: string): Lane {
    const { throttles, timers } = this.#world;
    return getOrMake(this.#lanes, provider, () => new Lane(throttles.get(provider) ?? USUAL, timers));
  }
}

/** A bulk op in answers, without an id. */
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

/** More days than these slow a bulk op down, by so many milliseconds each. */
const MANY_DAYS = 365;
const SLOW_MS_PER_DAY = 100;

interface Task {
  readonly run: () => void;
  readonly slowMs: number;
}

/** Runs tasks in order, no faster than a throttle allows. */
class Lane {
  readonly #throttle: Throttle;
  readonly #timers: Timers;
  #tasks: Task[] = [];
  #next = 0;
  /** Whether a turn is due. */
  #scheduled = false;

  constructor(throttle: Throttle, timers: Timers) {
    this.#throttle = throttle;
    this.#timers = timers;
  }

  push(task: Task): void {
    this.#tasks.push(task);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Later, so that tasks pushed together share a turn.
    this.#timers.after(0, () => this.#turn());
  }

  /** Runs as many tasks as the throttle allows at once. */
  #turn(): void {
    const batch = this.#tasks.slice(this.#next, this.#next + this.#throttle.connections);
    this.#next += batch.length;
    const slowMs = Math.max(0, ...batch.map((task) => task.slowMs));
    this.#timers.after(slowMs, () => batch.forEach(({ run }) => run()));
    if (this.#next === this.#tasks.length) {
      this.#tasks = [];
      this.#next = 0;
    }
    this.#timers.after(this.#throttle.everyMs + slowMs, () => {
      if (this.#tasks.length > 0) this.#turn();
      else this.#scheduled = false;
    });
  }
}
