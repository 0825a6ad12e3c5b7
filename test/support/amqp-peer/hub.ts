import rhea, { type Sender } from 'rhea';

/** One message as the peer keeps it; `content` is as the publisher encoded it. */
interface Stored {
  readonly partition: number;
  readonly sequenceNumber: number;
  readonly offset: string;
  readonly enqueuedAt: number;
  readonly partitionKey: string | null;
  readonly content: Buffer;
}

/** A stored message, decoded. */
export interface PeerMessage extends Omit<Stored, 'content'> {
  readonly body: Buffer;
  readonly properties: Readonly<Record<string, string>>;
}

interface Partition {
  readonly messages: Stored[];
  /** Bytes taken so far: the next offset. Never the sequence number, so that mixing them up is noticed. */
  length: number;
  readonly readers: Set<() => void>;
  /** Links that read it now, with their owner levels. */
  readonly links: Map<Sender, number | null>;
}

/** An Event Hub: partitions that messages are added to, and readers that are notified. */
export class Hub {
  readonly name: string;
  readonly partitions: readonly Partition[];
  /** Every message over all partitions, in order of arrival; stays empty when the peer only counts. */
  readonly arrivals: Stored[] = [];
  count = 0;
  #next = 0;
  readonly #keep: boolean;

  constructor(name: string, partitions: number, keep: boolean) {
    this.name = name;
    this.#keep = keep;
    this.partitions = Array.from({ length: partitions }, () => ({
      messages: [],
      length: 0,
      readers: new Set(),
      links: new Map(),
    }));
  }

  /** @param partition as the publisher chose it; null leaves it to the key, or else to the round */
  add(messages: readonly Buffer[], partitionKey: string | null, partition: number | null, now: number): void {
    const index =
      partition ?? (partitionKey === null ? this.#round() : hash(partitionKey) % this.partitions.length);
    const target = this.partitions[index];
    if (target === undefined) throw new RangeError(`no partition ${index}`);
    for (const message of messages) {
      this.count += 1;
      if (!this.#keep) continue;
      const stored: Stored = {
        partition: index,
        sequenceNumber: target.messages.length,
        offset: String(target.length),
        enqueuedAt: now,
        partitionKey,
        content: message,
      };
      target.messages.push(stored);
      target.length += message.length;
      this.arrivals.push(stored);
    }
    for (const wake of target.readers) wake();
  }

  #round(): number {
    this.#next = (this.#next + 1) % this.partitions.length;
    return this.#next;
  }
}

/**
 * Index of the first message behind a start position.
 * @param selector such as `amqp.annotation.x-opt-offset > '123'`; offsets -1 and @latest are the two ends
 */
export function positionOf({ messages }: Partition, selector: string): number {
  const match = /x-opt-([a-z-]+) (>=?) '(.*)'/.exec(selector);
  if (match === null) throw new RangeError(`cannot read the filter ${selector}`);
  const [, field, comparison, value = ''] = match;
  if (value === '@latest') return messages.length;
  const bound = Number(value);
  const index = messages.findIndex((message) => {
    const own =
      field === 'offset'
        ? Number(message.offset)
        : field === 'sequence-number'
          ? message.sequenceNumber
          : message.enqueuedAt;
    return comparison === '>=' ? own >= bound : own > bound;
  });
  return index === -1 ? messages.length : index;
}

/** With what a broker notes on a message. */
export function encodeStored({ content, sequenceNumber, offset, enqueuedAt, partitionKey }: Stored): Buffer {
  const { wrap_long: long, wrap_timestamp: timestamp } = rhea.types;
  const notes = {
    'x-opt-sequence-number': long(sequenceNumber),
    'x-opt-offset': offset,
    'x-opt-enqueued-time': timestamp(enqueuedAt),
    ...(partitionKey === null ? {} : { 'x-opt-partition-key': partitionKey }),
  };
  return rhea.message.encode({ ...rhea.message.decode(content), message_annotations: notes });
}

export function decodeStored({ content, ...rest }: Stored): PeerMessage {
  const { body, application_properties: properties } = rhea.message.decode(content);
  return { ...rest, body: (body as { content: Buffer }).content, properties: { ...properties } };
}

/** FNV-1a; the service uses another hash, but promises only that a key stays in its partition. */
function hash(key: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(key)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}
