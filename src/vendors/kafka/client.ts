import type { API, Connection as Socket, produceV11 } from '@platformatic/kafka';
import { answerIn, Brokers, codeName, type Kafka } from './brokers.ts';
import { clientOptions, type Connection } from './connection.ts';
import { encodeBatch, encodeCompressed, type EncodedRecord } from './record-batch.ts';

/** Who writes: with it the broker recognises a batch that is sent again. */
export interface Identity {
  readonly id: bigint;
  readonly epoch: number;
}

/** The records of one partition that go into one batch. */
export interface Batch {
  readonly records: readonly EncodedRecord[];
  /** Number of its first record, of all that this identity writes to the partition. */
  readonly sequence: number;
}

export interface ProduceRequest {
  readonly topic: string;
  readonly batches: ReadonlyMap<number, Batch>;
  readonly identity: Identity | null;
  readonly codec: Codec;
}

/** How batches are compressed. */
export type Codec = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';

type InitApi = API<
  [transactionalId: null, timeout: number, id: bigint, epoch: number],
  { readonly producerId: bigint }
>;

const NO_PRODUCER = -1n;

/**
 * The requests for writing. The package's producer is not used: when one of several sends fails, it loses the sequence
 * numbers of those that are in flight.
 */
export class Client extends Brokers {
  readonly #timeout: number;

  /** Connects nothing yet. */
  constructor(connection: Connection, timeout: number) {
    const { requestTimeout = timeout } = clientOptions(connection, timeout);
    super(connection, timeout, requestTimeout);
    this.#timeout = requestTimeout;
  }

  /** A new identity. */
  async identify(): Promise<Identity> {
    const { UnsupportedApiError } = await this.kafka();
    const api = await this.api<InitApi>('InitProducerId').catch((error: unknown) => {
      if (!(error instanceof UnsupportedApiError)) throw error;
      throw new Error('the cluster does not recognise a batch that is sent again; write idempotent: false');
    });
    const { producerId } = await api.async(await this.any(), null, this.#timeout, -1n, -1);
    return { id: producerId, epoch: 0 };
  }

  /**
   * Writes to partitions that one broker leads.
   * @param signal nothing is sent after it has aborted
   * @returns the protocol's error of each partition: `NONE` once all in-sync replicas have the batch
   * @throws without an answer; the batches may have been written
   */
  async produce(
    leader: number,
    request: ProduceRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, PartitionAnswer>> {
    const { topic, batches, identity, codec } = request;
    const kafka = await this.kafka();
    const api = await this.api<API<[], unknown>>('Produce');
    const connection = await this.node(leader);
    const encoded = new Map<number, Buffer>();
    for (const [partition, batch] of batches)
      encoded.set(partition, await encode(kafka, batch, identity, codec));
    signal.throwIfAborted();
    const sent = { topic, batches: encoded, timeout: this.#timeout };
    const answer = await sendBatches(kafka, connection, api, sent).catch(
      (error: unknown) => answerIn(error) as ProduceResponse,
    );
    const responses = answer.responses.find(({ name }) => name === topic)?.partitionResponses ?? [];
    return new Map(responses.map((each) => [each.index, answerOf(kafka, each)]));
  }
}

function encode(
  { crc32c, compressionsAlgorithms, Writer }: Kafka,
  { records, sequence }: Batch,
  identity: Identity | null,
  codec: Codec,
): Buffer | Promise<Buffer> {
  // It copies a plain buffer first, which takes four times as long as the checksum.
  const checksum = (bytes: Buffer): number => crc32c(Writer.create().append(bytes).dynamicBuffer);
  const { id: producer, epoch } = identity ?? { id: NO_PRODUCER, epoch: 0 };
  const head = { producer, epoch, sequence, time: Date.now() };
  if (codec === 'none') return encodeBatch(records, head, checksum);
  const { bitmask, compressSync, ...more } = compressionsAlgorithms[codec];
  const compress = 'compress' in more ? more.compress : compressSync;
  return encodeCompressed(records, head, checksum, { bitmask, compress });
}

export interface PartitionAnswer {
  /** The protocol's name: `NONE`, `MESSAGE_TOO_LARGE`. */
  readonly name: string;
  readonly message: string;
}

function answerOf(
  kafka: Kafka,
  { errorCode, errorMessage }: produceV11.ProduceResponsePartition,
): PartitionAnswer {
  const name = codeName(kafka, errorCode);
  return { name, message: errorMessage ?? kafka.protocolErrors[name]?.message ?? '' };
}

type ProduceResponse = produceV11.ProduceResponse;
type Parse = Parameters<Socket['send']>[3];

/** Version of the protocol from which lengths are short, and fields can be added. */
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
  { key, version }: Pick<API<[], unknown>, 'key' | 'version'>,
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

/** Parses the answer in a version of the protocol. */
function parserOf(kafka: Kafka, version: number): Parse {
  const from3 = [kafka.produceV3, kafka.produceV4, kafka.produceV5, kafka.produceV6, kafka.produceV7];
  const from8 = [kafka.produceV8, kafka.produceV9, kafka.produceV10, kafka.produceV11];
  const found = [...from3, ...from8][version - 3];
  if (found === undefined) throw new Error(`version ${version} of Produce is not known`);
  return found.parseResponse;
}
