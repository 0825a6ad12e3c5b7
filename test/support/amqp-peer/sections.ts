/**
 * The few bits of AMQP 1.0 encoding that are worth doing by hand: messages are cut out of a batch, and get the broker's
 * annotations, without being decoded. That is what makes the peer fast enough for benchmarks.
 */

const DESCRIBED = 0x00;
const SMALL_ULONG = 0x53;
const ULONG = 0x80;

export const SECTION = { header: 0x70, delivery: 0x71, annotations: 0x72, data: 0x75 } as const;

interface Section {
  readonly code: number;
  readonly start: number;
  /** Where its value begins, after the descriptor. */
  readonly value: number;
  readonly end: number;
}

/** The sections of an encoded message, one after another. @throws RangeError when the bytes are not sections */
export function* sectionsOf(bytes: Buffer): Generator<Section> {
  for (let at = 0; at < bytes.length;) {
    const start = at;
    if (bytes[at] !== DESCRIBED) throw new RangeError(`no section at byte ${at}`);
    const wide = bytes[at + 1] === ULONG;
    if (!wide && bytes[at + 1] !== SMALL_ULONG) throw new RangeError(`no descriptor at byte ${at}`);
    const code = wide ? Number(bytes.readBigUInt64BE(at + 2)) : bytes.readUInt8(at + 2);
    const value = at + (wide ? 10 : 3);
    at = value + valueLength(bytes, value);
    yield { code, start, value, end: at };
  }
}

/** The messages a batch (format 0x80013700) is made of, and its own annotations section if it has one. */
export function splitBatch(bytes: Buffer): { annotations: Buffer | null; messages: Buffer[] } {
  let annotations: Buffer | null = null;
  const messages: Buffer[] = [];
  for (const { code, start, value, end } of sectionsOf(bytes)) {
    if (code === SECTION.annotations) annotations = bytes.subarray(start, end);
    else if (code === SECTION.data)
      messages.push(bytes.subarray(value + (bytes[value] === 0xa0 ? 2 : 5), end));
  }
  return { annotations, messages };
}

/** A message without header and annotations: the part that stays as the publisher encoded it. */
export function withoutAnnotations(bytes: Buffer): Buffer {
  for (const { code, start } of sectionsOf(bytes)) {
    if (code > SECTION.annotations) return bytes.subarray(start);
  }
  return Buffer.alloc(0);
}

/** What a broker notes on a message. */
export interface Annotations {
  readonly sequenceNumber: number;
  readonly offset: string;
  /** Milliseconds since the epoch. */
  readonly enqueuedAt: number;
  readonly partitionKey: string | null;
}

/** A message-annotations section. */
export function encodeAnnotations(notes: Annotations): Buffer {
  const pairs = [
    symbol('x-opt-sequence-number'),
    eightBytes(0x81, notes.sequenceNumber),
    symbol('x-opt-offset'),
    text(notes.offset),
    symbol('x-opt-enqueued-time'),
    eightBytes(0x83, notes.enqueuedAt),
  ];
  if (notes.partitionKey !== null) pairs.push(symbol('x-opt-partition-key'), text(notes.partitionKey));
  const content = Buffer.concat(pairs);
  const head = Buffer.alloc(12);
  head.set([DESCRIBED, SMALL_ULONG, SECTION.annotations, 0xd1]);
  head.writeUInt32BE(content.length + 4, 4);
  head.writeUInt32BE(pairs.length, 8);
  return Buffer.concat([head, content]);
}

function symbol(name: string): Buffer {
  return Buffer.concat([Buffer.from([0xa3, name.length]), Buffer.from(name, 'ascii')]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'utf8');
  const head = Buffer.alloc(5);
  head[0] = 0xb1;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function eightBytes(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = type;
  bytes.writeBigInt64BE(BigInt(value), 1);
  return bytes;
}

/** Bytes an encoded value takes, its type byte included. The high half of the type byte says how it is laid out. */
function valueLength(bytes: Buffer, at: number): number {
  const type = bytes.readUInt8(at);
  switch (type >> 4) {
    case 0x4:
      return 1;
    case 0x5:
      return 2;
    case 0x6:
      return 3;
    case 0x7:
      return 5;
    case 0x8:
      return 9;
    case 0x9:
      return 17;
    case 0xa:
    case 0xc:
    case 0xe:
      return 2 + bytes.readUInt8(at + 1);
    case 0xb:
    case 0xd:
    case 0xf:
      return 5 + bytes.readUInt32BE(at + 1);
    default:
      throw new RangeError(`type ${type} at byte ${at} is not a plain value`);
  }
}
