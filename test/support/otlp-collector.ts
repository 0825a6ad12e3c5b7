import { buffer } from 'node:stream/consumers';
import { serve } from './listen.ts';

/** A span as the tests look at it; ids in hex. */
export interface CollectedSpan {
  readonly name: string;
  readonly trace: string;
  readonly id: string;
  readonly parent: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly string[];
}

export interface Collector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** All bytes it was sent, to look for what must not be there. */
  readonly bytes: () => Buffer;
  readonly headers: Record<string, unknown>[];
}

/** Takes traces by OTLP over HTTP, in protobuf as the standard's default is. Stopped when the running test ends. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const bodies: Buffer[] = [];
  const headers: Record<string, unknown>[] = [];
  const url = await serve((request, response) => {
    void buffer(request).then((body) => {
      bodies.push(body);
      headers.push(request.headers);
      if (request.url === '/v1/traces') spans.push(...spansIn(body));
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  return { url, spans, bytes: () => Buffer.concat(bodies), headers };
}

/** Fields of opentelemetry/proto/trace/v1/trace.proto. */
function spansIn(body: Buffer): CollectedSpan[] {
  const found: CollectedSpan[] = [];
  for (const resource of fieldsOf(body).get(1) ?? [])
    for (const scope of fieldsOf(resource).get(2) ?? [])
      for (const span of fieldsOf(scope).get(2) ?? []) found.push(spanOf(fieldsOf(span)));
  return found;
}

function spanOf(fields: Fields): CollectedSpan {
  const hex = (field: number): string => fields.get(field)?.[0]?.toString('hex') ?? '';
  return {
    trace: hex(1),
    id: hex(2),
    parent: hex(4),
    name: String(fields.get(5)?.[0]),
    attributes: Object.fromEntries((fields.get(9) ?? []).map(attributeOf)),
    links: (fields.get(13) ?? []).map((link) => fieldsOf(link).get(2)?.[0]?.toString('hex') ?? ''),
  };
}

function attributeOf(bytes: Buffer): [string, string | number] {
  const fields = fieldsOf(bytes);
  const value = fieldsOf(fields.get(2)?.[0] ?? Buffer.alloc(0));
  const text = value.get(1)?.[0];
  return [String(fields.get(1)?.[0]), text === undefined ? Number(value.get(3)?.[0]) : String(text)];
}

type Fields = Map<number, Buffer[]>;

/** One message of protobuf: numbers as their digits. */
function fieldsOf(bytes: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const kind = key & 7;
    let value: Buffer;
    if (kind === 0) value = Buffer.from(String(varint()));
    else {
      const length = kind === 2 ? Number(varint()) : kind === 1 ? 8 : 4;
      value = bytes.subarray(at, (at += length));
    }
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value]);
  }
  return fields;
}
