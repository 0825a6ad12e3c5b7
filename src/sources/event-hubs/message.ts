import type { ReceivedEventData } from '@azure/event-hubs';
import type { IncomingMessage } from '../../core/ingest.ts';
import { encodingIn } from '../take.ts';

/** @param now for a message that does not say when the hub took it, milliseconds since the epoch */
export function toIncoming(
  { body, properties, enqueuedTimeUtc }: ReceivedEventData,
  now: number,
): IncomingMessage {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(properties ?? {})) {
    const text = textOf(value);
    if (text !== null) texts[name] = text;
  }
  return {
    body: bytesOf(body),
    encoding: encodingIn(texts, 'content-encoding'),
    properties: texts,
    receivedAt: enqueuedTimeUtc instanceof Date ? enqueuedTimeUtc.getTime() : now,
  };
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

/** The SDK hands over data sections as buffers; whatever else a publisher put there becomes the JSON of it. */
function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  if (body instanceof Uint8Array) return Buffer.from(body);
  if (Array.isArray(body) && body.every((part) => Buffer.isBuffer(part))) return Buffer.concat(body);
  return Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));
}
