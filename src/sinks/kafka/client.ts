import type { API, Base, MessageRecord, produceV11 } from '@platformatic/kafka';
import { clientOptions, quiet, type Connection } from './connection.ts';
import type { Message } from './message.ts';

/** Who writes, for the broker to tell a batch that comes again. Without one it cannot. */
export interface Identity {
  readonly id: bigint;
  readonly epoch: number;
}

/** The records of one partition that go into one batch. */
export interface Batch {
  readonly messages: readonly Message[];
  /** Number of its first record among all that this identity writes to the partition. */
  readonly sequence: number;
}

export interface ProduceRequest {
  readonly topic: string;
  readonly batches: ReadonlyMap<number, Batch>;
  readonly identity: Identity | null;
  readonly codec: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
}

type ProduceResponse = produceV11.ProduceResponse;
type Kafka = typeof import('@platformatic/kafka');
type ProduceApi = API<
  [acks: number, timeout: number, records: MessageRecord[], options: object],
  ProduceResponse
>;
type InitApi = API<
  [transactionalId: null, timeout: number, id: bigint, epoch: number],
  { readonly producerId: bigint }
>;

const ALL_REPLICAS = -1;

/**
 * The requests that writing takes. Of the package it uses the connections, the metadata and the encoding, and not its
 * producer, which forgets the sequence numbers of what is on the way when one of several sends fails.
 */
export class Client {
  readonly #kafka: Kafka;
  readonly #base: Base;
  readonly #timeout: number;

  private constructor(kafka: Kafka, base: Base, timeout: number) {
    this.#kafka = kafka;
    this.#base = base;
    this.#timeout = timeout;
  }

  /** Connects nothing yet. */
  static async load(connection: Connection, timeout: number): Promise<Client> {
    const kafka = await import('@platformatic/kafka');
    const options = clientOptions(connection, timeout);
    const base = new kafka.Base(options);
    quiet(base);
    return new Client(kafka, base, options.requestTimeout ?? timeout);
  }

  /** Throws when no broker answers. */
  async connect(): Promise<void> {
    await this.#base.metadata({ topics: [], forceUpdate: true });
  }

  /** The leader of each partition. @param anew looks even if it was looked up a moment ago */
  async leaders(topic: string, anew = false): Promise<readonly number[]> {
    const metadata = await this.#base.metadata({ topics: [topic], forceUpdate: anew });
    const found = metadata.topics.get(topic);
    if (found === undefined) throw new Error(`Unknown topic ${topic}.`);
    return found.partitions.map(({ leader }) => leader);
  }

  /** A new identity. */
  async identify(): Promise<Identity> {
    const api = await this.#api<InitApi>('InitProducerId').catch((error: unknown) => {
      if (!(error instanceof this.#kafka.UnsupportedApiError)) throw error;
      throw new Error('the cluster cannot tell a batch that is sent again; write idempotent: false');
    });
    const { brokers } = await this.#base.metadata({});
    const connection = await this.#base.connections.getFirstAvailable([...brokers.values()]);
    const { producerId } = await api.async(connection, null, this.#timeout, -1n, -1);
    return { id: producerId, epoch: 0 };
  }

  /**
   * Writes to partitions that one broker leads.
   * @returns the name of the protocol's error of each partition, `NONE` once all in-sync replicas have the batch
   * @param signal nothing is sent once it has aborted
   * @throws when there is no answer; the batches may have been written
   */
  async produce(
    leader: number,
    request: ProduceRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, PartitionAnswer>> {
    const { topic, batches, identity, codec } = request;
    const api = await this.#api<ProduceApi>('Produce');
    const { brokers } = await this.#base.metadata({});
    const broker = brokers.get(leader);
    if (broker === undefined) throw new Error(`broker ${leader} is not there`);
    const connection = await this.#base.connections.get(broker);
    const records: MessageRecord[] = [];
    const sequences = new this.#kafka.NumericMap();
    for (const [partition, { messages, sequence }] of batches) {
      sequences.set(`${topic}:${partition}`, sequence);
      for (const message of messages) records.push(recordOf(topic, partition, message));
    }
    const owner =
      identity === null ? {} : { producerId: identity.id, producerEpoch: identity.epoch, sequences };
    const options = { compression: codec, ...owner };
    signal.throwIfAborted();
    let answer: ProduceResponse;
    try {
      answer = await api.async(connection, ALL_REPLICAS, this.#timeout, records, options);
    } catch (error) {
      // An answer with an error in it is thrown, and is an answer all the same.
      if (!(error instanceof this.#kafka.ResponseError) || !isAnswer(error)) throw error;
      answer = error.response;
    }
    const responses = answer.responses.find(({ name }) => name === topic)?.partitionResponses ?? [];
    return new Map(responses.map((each) => [each.index, this.#answerOf(each)]));
  }

  async close(): Promise<void> {
    await this.#base.close();
  }

  #answerOf({ errorCode, errorMessage }: produceV11.ProduceResponsePartition): PartitionAnswer {
    const name = this.#kafka.protocolErrorsCodesById[errorCode] ?? `error ${errorCode}`;
    return { name, message: errorMessage ?? this.#kafka.protocolErrors[name]?.message ?? '' };
  }

  #api<T>(name: string): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#base[this.#kafka.kGetApi](name, (error, api) =>
        error === null || error === undefined ? resolve(api as T) : reject(error),
      );
    });
  }
}

export interface PartitionAnswer {
  /** As the protocol calls it: `NONE`, `MESSAGE_TOO_LARGE`. */
  readonly name: string;
  readonly message: string;
}

function recordOf(topic: string, partition: number, { key, value, headers }: Message): MessageRecord {
  // The package writes null as it is, and does not say so in its types.
  const written = value as Buffer;
  return { topic, partition, value: written, headers: new Map(headers), ...(key === null ? {} : { key }) };
}

function isAnswer(error: object): error is { readonly response: ProduceResponse } {
  return 'response' in error;
}
