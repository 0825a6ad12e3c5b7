import type { Connection, produceV11 } from '@platformatic/kafka';
import type { Call, Kafka } from './brokers.ts';

export type ProduceResponse = produceV11.ProduceResponse;
type Parse = Parameters<Connection['send']>[3];

/** Of the protocol; from this version on lengths are short, and fields can be added. */
const FLEXIBLE = 9;
const ALL_REPLICAS = -1;

/**
 * One request to write encoded batches to partitions of a topic; answered when all in-sync replicas have them.
 * @param batches by partition
 * @param timeout milliseconds for the replicas
 */
export function sendBatches(
  kafka: Kafka,
  connection: Connection,
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
