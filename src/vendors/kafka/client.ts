import type { Connection as Socket, produceV11 } from '@platformatic/kafka';
import { Brokers, type Call, type Kafka } from './brokers.ts';
import { clientOptions, type Connection } from './connection.ts';
import { encodeBatch, encodeCompressed, type EncodedRecord } from './record-batch.ts';

/** Who writes, for the broker to tell a batch that comes again. Without one it cannot. */
export interface Identity {
  readonly id: bigint;
  readonly epoch: number;
}

/** The records of one partition that go into one batch. */
export interface Batch {
  readonly records: readonly EncodedRecord[];
  /** Number of its first record among all that this identity writes to the partition. */
  readonly sequence: number;
}

export interface ProduceRequest {
  readonly topic: string;
  readonly batches: ReadonlyMap<number, Batch>;
  readonly identity: Identity | null;
  readonly codec: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
}

type InitApi = Call<
  [transactionalId: null, timeout: number, id: bigint, epoch: number],
  { readonly producerId: bigint }
>;

const NOBODY = -1n;

/**
 * The requests that writing takes. The package's producer forgets the sequence numbers of what is on the way when one of
 * several sends fails.
 */
export class Client {
  readonly #brokers: Brokers;
  readonly #timeout: number;

  private constructor(brokers: Brokers, timeout: number) {
    this.#brokers = brokers;
    this.#timeout = timeout;
  }

  /** Connects nothing yet. */
  static async load(connection: Connection, timeout: number): Promise<Client> {
    const { requestTimeout = timeout } = clientOptions(connection, timeout);
    return new Client(await Brokers.load(connection, timeout, requestTimeout), requestTimeout);
  }

  /** Throws when no broker answers. */
  async connect(): Promise<void> {
    await this.#brokers.any();
  }

  /** The leader of each partition. @param anew looks even if it was looked up a moment ago */
  async leaders(topic: string, anew = false): Promise<readonly number[]> {
    return (await this.#brokers.topic(topic, anew)).leaders;
  }

  /** A new identity. */
  async identify(): Promise<Identity> {
    const api = await this.#brokers.api<InitApi>('InitProducerId').catch((error: unknown) => {
      if (!(error instanceof this.#brokers.kafka.UnsupportedApiError)) throw error;
      throw new Error('the cluster cannot tell a batch that is sent again; write idempotent: false');
    });
    const { producerId } = await api.async(await this.#brokers.any(), null, this.#timeout, -1n, -1);
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
    const api = await this.#brokers.api<Call<[], unknown>>('Produce');
    const connection = await this.#brokers.node(leader);
    const encoded = new Map<number, Buffer>();
    for (const [partition, batch] of batches)
      encoded.set(partition, await this.#encode(batch, identity, codec));
    signal.throwIfAborted();
    const { kafka } = this.#brokers;
    const answer = await sendBatches(kafka, connection, api, {
      topic,
      batches: encoded,
      timeout: this.#timeout,
    }).catch((error: unknown) => this.#brokers.answerIn(error) as ProduceResponse);
    const responses = answer.responses.find(({ name }) => name === topic)?.partitionResponses ?? [];
    return new Map(responses.map((each) => [each.index, this.#answerOf(each)]));
  }

  async close(): Promise<void> {
    await this.#brokers.close();
  }

  #encode(
    { records, sequence }: Batch,
    identity: Identity | null,
    codec: ProduceRequest['codec'],
  ): Buffer | Promise<Buffer> {
    const { crc32c, compressionsAlgorithms, Writer } = this.#brokers.kafka;
    // Of a plain buffer it makes a copy first, which takes four times as long as the checksum.
    const checksum = (bytes: Buffer): number => crc32c(Writer.create().append(bytes).dynamicBuffer);
    const head = {
      producer: identity?.id ?? NOBODY,
      epoch: identity?.epoch ?? 0,
      sequence,
      time: Date.now(),
    };
    if (codec === 'none') return encodeBatch(records, head, checksum);
    const { bitmask, compressSync, ...more } = compressionsAlgorithms[codec];
    const compress = 'compress' in more ? more.compress : compressSync;
    return encodeCompressed(records, head, checksum, { bitmask, compress });
  }

  #answerOf({ errorCode, errorMessage }: produceV11.ProduceResponsePartition): PartitionAnswer {
    const name = this.#brokers.nameOf(errorCode);
    return { name, message: errorMessage ?? this.#brokers.kafka.protocolErrors[name]?.message ?? '' };
  }
}

export interface PartitionAnswer {
  /** As the protocol calls it: `NONE`, `MESSAGE_TOO_LARGE`. */
  readonly name: string;
  readonly message: string;
}

type ProduceResponse = produceV11.ProduceResponse;
type Parse = Parameters<Socket['send']>[3];

/** Of the protocol; from this version on lengths are short, and fields can be added. */
const FLEXIBLE = 9;
const ALL_REPLICAS = -1;

/**
 * One request to write encoded batches to partitions of a topic; answered when all in-sync replicas have them.
 * @param batches by partition
 * @param timeout milliseconds for the replicas
 */
function sendBatches(
  kafka: Kafka,
  connection: Socket,
  { key, version }: Pick<Call<[], unknown>, 'key' | 'version'>,
  { topic, batches, timeout }: { topic: string; batches: ReadonlyMap<number, Buffer>; timeout: number },
): Promise<ProduceResponse> {
  const isFlexible = version >= FLEXIBLE;
  const payload = () => {
    const writer = kafka.Writer.create()
      .appendString(null, isFlexible)
      .appendInt16(ALL_REPLICAS)
      .appendInt32(timeout)
      .appendArray(
        [topic],
        (w, name) =>
          w
            .appendString(name, isFlexible)
            .appendArray(
              [...batches],
              (inner, [partition, batch]) => inner.appendInt32(partition).appendBytes(batch, isFlexible),
              isFlexible,
              isFlexible,
            ),
        isFlexible,
        isFlexible,
      );
    return isFlexible ? writer.appendTaggedFields() : writer;
  };
  const parse = parserOf(kafka, version);
  return new Promise((resolve, reject) => {
    connection.send(key, version, payload, parse, isFlexible, isFlexible, (error, answer) =>
      error === null || error === undefined ? resolve(answer as ProduceResponse) : reject(error),
    );
  });
}

/** What reads the answer in a version of the protocol. */
function parserOf(kafka: Kafka, version: number): Parse {
  const from3 = [kafka.produceV3, kafka.produceV4, kafka.produceV5, kafka.produceV6, kafka.produceV7];
  const from8 = [kafka.produceV8, kafka.produceV9, kafka.produceV10, kafka.produceV11];
  const found = [...from3, ...from8][version - 3];
  if (found === undefined) throw new Error(`version ${version} of Produce is not known`);
  return found.parseResponse;
}
