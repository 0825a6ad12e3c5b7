import type { Checkpoint, CheckpointStore, PartitionOwnership } from '@azure/event-hubs';

export interface ClaimsOptions {
  /** Shared by all workers. */
  readonly store: CheckpointStore;
  /** The name of this worker. */
  readonly owner: string;
  /** The offset before the first message to read, for a partition that was never read; null begins at the oldest message. */
  readonly firstOf: ((partition: string) => Promise<Pick<Checkpoint, 'offset' | 'sequenceNumber'>>) | null;
}

/**
 * The claims and checkpoints of the workers, as the SDK asks for them; another store keeps them. It solves what the SDK does
 * not:
 * - A worker that lost its link while it was busy connects again, and takes the partition from the worker that has claimed
 *   it. `belongsToAnother` lets it stop at its next batch.
 * - A partition that this worker has claimed, but lost in this way, would not be read until the claim expires. It is shown as
 *   free to this worker, which then claims it again.
 * - The first offset of a partition is saved before the partition is read, by the worker with the claim, and so only once:
 *   otherwise a restart would begin at a later one.
 */
export class Claims implements CheckpointStore {
  readonly #options: ClaimsOptions;
  /** Partitions of other workers, when the claims were last listed. */
  readonly #foreign = new Set<string>();
  /** Partitions that were lost, and not claimed since. */
  readonly #left = new Set<string>();
  /** Partitions of the last claim. */
  #claimed: readonly string[] = [];

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  belongsToAnother(partition: string): boolean {
    return this.#foreign.has(partition);
  }

  /** The partition is no longer read here, though its claim was not released. */
  leave(partition: string): void {
    this.#left.add(partition);
  }

  async listOwnership(...hub: Parameters<CheckpointStore['listOwnership']>): Promise<PartitionOwnership[]> {
    const { store, owner } = this.#options;
    const known = await store.listOwnership(...hub);
    this.#foreign.clear();
    for (const { ownerId, partitionId } of known)
      if (ownerId !== owner && ownerId !== '') this.#foreign.add(partitionId);
    return known.map((each) =>
      each.ownerId === owner && this.#left.has(each.partitionId) ? { ...each, ownerId: '' } : each,
    );
  }

  async claimOwnership(
    ...[wanted, options]: Parameters<CheckpointStore['claimOwnership']>
  ): Promise<PartitionOwnership[]> {
    const claimed = await this.#options.store.claimOwnership(wanted, options);
    this.#claimed = claimed.map(({ partitionId }) => partitionId);
    for (const partition of this.#claimed) {
      this.#foreign.delete(partition);
      this.#left.delete(partition);
    }
    return claimed;
  }

  updateCheckpoint(...checkpoint: Parameters<CheckpointStore['updateCheckpoint']>): Promise<void> {
    return this.#options.store.updateCheckpoint(...checkpoint);
  }

  async listCheckpoints(...hub: Parameters<CheckpointStore['listCheckpoints']>): Promise<Checkpoint[]> {
    const { store, firstOf } = this.#options;
    const known = await store.listCheckpoints(...hub);
    if (firstOf === null) return known;
    const [fullyQualifiedNamespace, eventHubName, consumerGroup] = hub;
    for (const partitionId of this.#claimed) {
      if (known.some((each) => each.partitionId === partitionId)) continue;
      const place = { fullyQualifiedNamespace, eventHubName, consumerGroup, partitionId };
      const first: Checkpoint = { ...place, ...(await firstOf(partitionId)) };
      await store.updateCheckpoint(first);
      known.push(first);
    }
    return known;
  }
}
