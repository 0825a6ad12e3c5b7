import type { Checkpoint, CheckpointStore, PartitionOwnership } from '@azure/event-hubs';

export interface ClaimsOptions {
  /** Where all workers look. */
  readonly store: CheckpointStore;
  /** This worker. */
  readonly owner: string;
  /** The place before the first message to read, for a partition never read before; null begins at the beginning. */
  readonly firstOf: ((partition: string) => Promise<Pick<Checkpoint, 'offset' | 'sequenceNumber'>>) | null;
}

/**
 * Who reads which partition, and how far, as the SDK asks for it; another store answers. Settled here is what the SDK
 * leaves open:
 * - A reader whose link was taken away while it was busy connects again, and takes the partition back from the worker
 *   that has claimed it. So it is told at its next batch who has the claim.
 * - A partition that is ours by its claim, but was taken away from us like that, would be read by nobody until the claim
 *   lapses. So it looks free to ourselves, and is claimed again.
 * - The place a partition is first read from is kept before it is read, by whoever holds the claim, and so by one worker
 *   only: a restart would otherwise begin further behind.
 */
export class Claims implements CheckpointStore {
  readonly #options: ClaimsOptions;
  /** Partitions of others, by the last look. */
  readonly #foreign = new Set<string>();
  /** Partitions that were left, and not claimed since. */
  readonly #left = new Set<string>();
  /** By the last claim. */
  #claimed: readonly string[] = [];

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  belongsToAnother(partition: string): boolean {
    return this.#foreign.has(partition);
  }

  /** The partition is no longer read here, although it was not given up. */
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
