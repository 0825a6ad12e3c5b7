import type { FaultOptions, Faults } from './faults.ts';
import { Lane } from './lane.ts';
import { PROVIDERS, type Throttle } from './providers.ts';
import type { Pulls } from './pulls.ts';
import type { Shelf, State } from './state.ts';
import type { Timers } from './timers.ts';
import type { Users } from './users.ts';

/** Modes: `in_progress` → `success`, once every trigger was handled; `aborted` by `abort` or a fault, `failure` by a fault. */
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

type SavedOp = Omit<BulkOp, 'done'>;

/** Persistent background operations. Each provider has a lane, so that operations of one provider share its rate. */
export class BulkOps {
  readonly #timers: Timers;
  readonly #users: Users;
  readonly #pulls: Pulls;
  readonly #faults: FaultOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #ops: BulkOp[] = [];
  readonly #endings = new Map<BulkOp, () => void>();
  readonly #state: State;
  readonly #shelf: Shelf<SavedOp>;
  /** The users of operations that are not over, apart from what changes with each trigger: they can be a million. */
  readonly #waiting: Shelf<readonly [sequence: number, users: readonly string[]]>;
  readonly #turns: Shelf<readonly [provider: string, notBefore: number]>;

  constructor(timers: Timers, users: Users, pulls: Pulls, faults: Faults, state: State) {
    this.#timers = timers;
    this.#faults = faults.options;
    this.#users = users;
    this.#pulls = pulls;
    this.#state = state;
    this.#shelf = state.shelf('bulk ops');
    this.#waiting = state.shelf('bulk op users');
    this.#turns = state.shelf('lanes');
  }

  /** Goes on with the operations of an earlier run, no faster than their providers allow. */
  restore(): void {
    for (const [provider, notBefore] of this.#turns.all()) this.#laneOf(provider, notBefore);
    const waiting = new Map(this.#waiting.all());
    for (const saved of this.#shelf.all()) {
      const op = this.#begin(saved);
      if (op.status === 'in_progress') this.#queue(op, (waiting.get(op.sequence) ?? []).slice(op.processed));
    }
  }

  /** Enqueues a trigger for each user. Users without a connection to the provider are passed over, and counted. */
  enqueue(teamId: string, provider: string, userIds: readonly string[]): BulkOp {
    const op = this.#begin({
      sequence: this.#state.next('bulk op'),
      teamId,
      provider,
      status: 'in_progress',
      pending: userIds.length,
      processed: 0,
      startedAt: this.#timers.stamp(),
      endedAt: null,
    });
    this.#waiting.put(op.sequence, [op.sequence, userIds]);
    this.#save(op);
    this.#queue(op, userIds);
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

  #begin(saved: SavedOp): BulkOp {
    const { promise, resolve } = Promise.withResolvers<void>();
    const op: BulkOp = { ...saved, done: promise };
    this.#ops.push(op);
    if (op.status === 'in_progress') this.#endings.set(op, resolve);
    else resolve();
    return op;
  }

  #queue(op: BulkOp, userIds: readonly string[]): void {
    if (this.#fateOf(op) === 'stuck') return;
    const lane = this.#laneOf(op.provider);
    for (const id of userIds) lane.push(() => this.#trigger(op, id));
  }

  #save(op: BulkOp): void {
    const { done: _, ...saved } = op;
    this.#shelf.put(saved.sequence, saved);
  }

  #trigger(op: BulkOp, userId: string): void {
    if (op.status !== 'in_progress') return;
    op.pending -= 1;
    op.processed += 1;
    const user = this.#users.find(op.teamId, userId);
    if (user?.connections.some(({ provider }) => provider === op.provider) === true) {
      this.#pulls.start(user, op.provider);
    }
    const fate = this.#fateOf(op);
    if ((fate === 'aborted' || fate === 'failure') && op.processed >= op.pending) this.#end(op, fate);
    else if (op.pending === 0) this.#end(op, 'success');
    else this.#save(op);
  }

  #fateOf({ sequence }: BulkOp): 'stuck' | 'aborted' | 'failure' | 'lucky' {
    const { stuckOps = 0, abortedOps = 0, failedOps = 0 } = this.#faults;
    if (sequence <= stuckOps) return 'stuck';
    if (sequence <= stuckOps + abortedOps) return 'aborted';
    return sequence <= stuckOps + abortedOps + failedOps ? 'failure' : 'lucky';
  }

  #end(op: BulkOp, status: BulkOp['status']): void {
    if (op.status !== 'in_progress') return;
    op.status = status;
    op.endedAt = this.#timers.stamp();
    this.#endings.get(op)?.();
    this.#endings.delete(op);
    this.#waiting.delete(op.sequence);
    this.#save(op);
  }

  #laneOf(provider: string, notBefore = 0): Lane {
    const throttle: Throttle = PROVIDERS[provider] ?? { kind: 'window', connections: 8, everyMs: 60_000 };
    const onTurn = (next: number): void => this.#turns.put(provider, [provider, next]);
    const lane = this.#lanes.get(provider) ?? new Lane(throttle, this.#timers, notBefore, onTurn);
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
