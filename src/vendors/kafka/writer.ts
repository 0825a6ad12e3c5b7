import { setTimeout as wait } from 'node:timers/promises';
import { onAbort, unlessAborted } from '../../lib/abort.ts';
import { Serial } from '../../lib/serial.ts';
import { STOPPED_FAILURE, type Failure } from '../failure.ts';
import type { Client, Codec, Identity, PartitionAnswer } from './client.ts';
import { failureOfCode, toFailure } from './failure.ts';
import type { EncodedRecord } from './record-batch.ts';

export interface WriterOptions {
  readonly topic: string;
  readonly client: Client;
  readonly idempotent: boolean;
  readonly codec: Codec;
  /** Milliseconds for one `write`. */
  readonly timeout: number;
}

/** Result for a partition's records: null when all in-sync replicas have them. */
export type Written = Failure | null;

/** One try of a `write`. */
interface Try {
  /** What has still to be written. */
  readonly left: Map<number, readonly EncodedRecord[]>;
  readonly written: Map<number, Written>;
  /** Whether to ask again which brokers lead. */
  readonly look: boolean;
  readonly end: AbortSignal;
}

const PAUSE = 100;
/** Epochs are numbers of 16 bits, sequences of 32. */
const [LAST_EPOCH, LAST_SEQUENCE] = [32_767, 2 ** 31 - 1];
/** Written: now, or by a try whose answer was lost. */
const STORED = new Set(['NONE', 'DUPLICATE_SEQUENCE_NUMBER']);
/** The broker does not know the identity, or its last sequence number. */
const UNKNOWN_IDENTITY =
  /^(OUT_OF_ORDER_SEQUENCE_NUMBER|UNKNOWN_PRODUCER_ID|INVALID_PRODUCER_EPOCH|INVALID_PRODUCER_ID_MAPPING|PRODUCER_FENCED)$/;
/** The same can work at once, or after a look at which brokers lead. */
const RETRYABLE =
  /^(LEADER_NOT_AVAILABLE|NOT_LEADER_OR_FOLLOWER|REPLICA_NOT_AVAILABLE|REQUEST_TIMED_OUT|NOT_ENOUGH_REPLICAS|NOT_ENOUGH_REPLICAS_AFTER_APPEND|NETWORK_EXCEPTION|KAFKA_STORAGE_ERROR|FENCED_LEADER_EPOCH|UNKNOWN_LEADER_EPOCH|CORRUPT_MESSAGE)$/;

/**
 * Writes to one topic, one `write` at a time.
 *
 * Modes: new → known (has an identity) ⇄ torn (a batch was given up, and it is not known whether it was written). A batch
 * is tried again with the same sequence number, so that the broker recognises it. One that was given up must not be written
 * behind what follows it: the next write begins the next epoch, and the broker then refuses the one before. The epoch is
 * raised here without asking the broker, as Java's client does (KIP-360).
 */
export class Writer {
  readonly #options: WriterOptions;
  readonly #serial = new Serial();
  #identity: Identity | null = null;
  #sequences = new Map<number, number>();
  #mode: 'new' | 'known' | 'torn' = 'new';

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** How many partitions the topic has. Throws the package's error. */
  async partitions(): Promise<number> {
    return (await this.#options.client.topic(this.#options.topic)).leaders.length;
  }

  /** At most one batch a partition. Settles soon after its time is over, or the signal aborts. */
  async write(
    batches: ReadonlyMap<number, readonly EncodedRecord[]>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Written>> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.#options.timeout);
    const forget = onAbort(signal, () => late.abort());
    try {
      return await this.#serial.run(() => this.#write(new Map(batches), late.signal, signal));
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  /** @param end aborts with `signal`, and when the time is over */
  async #write(
    left: Map<number, readonly EncodedRecord[]>,
    end: AbortSignal,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Written>> {
    const written = new Map<number, Written>();
    const live = (): boolean => left.size > 0 && !end.aborted;
    for (let look = false; live(); look = true) {
      if (look) await wait(PAUSE, undefined, { signal: end }).catch(() => undefined);
      try {
        const identity = await unlessAborted(this.#identify(left), end, null);
        if (identity !== null && identity !== this.#identity) this.#begin(identity);
        if (live()) await unlessAborted(this.#try({ left, written, look, end }), end, undefined);
      } catch (error) {
        const failure = toFailure(error);
        for (const partition of left.keys()) written.set(partition, failure);
        if (failure.kind === 'denied' || failure.kind === 'missing') break;
      }
    }
    const reason = `no answer in ${this.#options.timeout} ms`;
    const unknown: Failure = signal.aborted ? STOPPED_FAILURE : { kind: 'late', reason };
    // It is not known whether those without an answer were written: the next epoch makes sure that they are not later.
    const answers = new Map([...left.keys()].map((partition) => [partition, unknown] as [number, Written]));
    for (const [partition, answer] of written) answers.set(partition, answer);
    if ([...answers.values()].some((each) => each !== null)) this.#mode = 'torn';
    return answers;
  }

  /** One request to each broker that leads; takes out of `left` what need not be tried again. */
  async #try({ left, written, look, end }: Try): Promise<void> {
    const { topic, codec } = this.#options;
    // Taken before the first wait: a try that still runs when its time is over must not use the next identity.
    const identity = this.#identity;
    const sequences = this.#sequences;
    const { client } = this.#options;
    const { leaders } = await client.topic(topic, look);
    const byLeader = Map.groupBy([...left.keys()], (partition) => leaders[partition] ?? -1);
    const requests = [...byLeader].map(async ([leader, partitions]) => {
      const batches = new Map(
        partitions.map((each) => [
          each,
          { records: left.get(each) ?? [], sequence: sequences.get(each) ?? 0 },
        ]),
      );
      try {
        const answers = await client.produce(leader, { topic, batches, identity, codec }, end);
        for (const [partition, { records }] of batches) {
          const answer = answers.get(partition) ?? { name: 'NETWORK_EXCEPTION', message: 'no answer' };
          written.set(partition, outcomeOf(answer));
          if (STORED.has(answer.name))
            sequences.set(partition, (sequences.get(partition) ?? 0) + records.length);
          if (UNKNOWN_IDENTITY.test(answer.name) && this.#identity === identity) this.#identity = null;
          if (!RETRYABLE.test(answer.name)) left.delete(partition);
        }
      } catch (error) {
        const failure = toFailure(error);
        for (const partition of partitions) written.set(partition, failure);
      }
    });
    await Promise.all(requests);
  }

  /** An identity with free sequence numbers: the present one or the next; null without idempotence. */
  async #identify(batches: ReadonlyMap<number, readonly EncodedRecord[]>): Promise<Identity | null> {
    if (!this.#options.idempotent) return null;
    const last = this.#identity;
    const full = [...batches].some(
      ([partition, { length }]) => (this.#sequences.get(partition) ?? 0) + length > LAST_SEQUENCE,
    );
    if (last !== null && this.#mode === 'known' && !full) return last;
    if (last !== null && last.epoch < LAST_EPOCH) return { ...last, epoch: last.epoch + 1 };
    return this.#options.client.identify();
  }

  #begin(identity: Identity): void {
    this.#identity = identity;
    // A new map: a try that was given up may still write to the old one.
    this.#sequences = new Map();
    this.#mode = 'known';
  }
}

function outcomeOf({ name, message }: PartitionAnswer): Written {
  return STORED.has(name) ? null : failureOfCode(name, message);
}
