import { crc32 } from 'node:zlib';
import type { EventRow, Packed } from './protocol.ts';

/** What the tables hold of an event, in the order of EVENT_COLUMNS. */
export interface StoredEvent {
  id: string;
  source: string;
  type: string;
  team: string | null;
  user: string | null;
  client_user: string | null;
  received_at: number;
  headers: string;
  handling: string | null;
  body: Buffer;
}

/** The body at `at` of a packed batch, without a copy. */
export function bodyOf(packed: Packed, at: number, length: number): Buffer {
  return Buffer.from(packed.bodies.buffer, packed.bodies.byteOffset + at, length);
}

export function storedOf(row: EventRow, body: Buffer): StoredEvent {
  const [id, source, type, team, user, client_user, received_at, headers, handling] = row;
  return { id, source, type, team, user, client_user, received_at, headers, handling, body };
}

/** CRC-32 over all that is stored of an event: what a disk gives back wrong is noticed before it is delivered. */
export function checksumOf(event: StoredEvent): number {
  const { id, source, type, team, user, client_user, received_at, headers, handling, body } = event;
  const head = `${id}\n${source}\n${type}\n${team}\n${user}\n${client_user}\n${received_at}\n${headers}\n${handling}`;
  return crc32(body, crc32(head));
}

/** In the order of EVENT_COLUMNS. */
export function valuesOf(event: StoredEvent): unknown[] {
  return [
    event.id,
    event.source,
    event.type,
    event.team,
    event.user,
    event.client_user,
    event.received_at,
    event.headers,
    event.handling,
    event.body,
  ];
}

/** Packs table rows for the way back to the main thread. */
export function packStored(events: readonly StoredEvent[]): Packed {
  const bodies = new Uint8Array(events.reduce((sum, event) => sum + event.body.length, 0));
  let at = 0;
  const rows = events.map((event): EventRow => {
    bodies.set(event.body, at);
    at += event.body.length;
    return [
      event.id,
      event.source,
      event.type,
      event.team,
      event.user,
      event.client_user,
      event.received_at,
      event.headers,
      event.handling,
      event.body.length,
    ];
  });
  return { rows, bodies };
}
