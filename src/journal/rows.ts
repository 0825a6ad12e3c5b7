import type { Event, Handling, JournalEvent } from '../core/event.ts';
import type { Redaction } from '../core/redaction.ts';

/**
 * An event beside its body, in the tables and on its way between threads alike, in the order of ROW_COLUMNS. It is a flat
 * tuple: cloning an object an event costs more than the insert it is for.
 */
export type EventRow = readonly [
  id: string,
  source: string,
  type: string,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  receivedAt: number,
  /** JSON, as is the handling. */
  headers: string,
  handling: string | null,
];

/** Events whose bodies stand one after the other in `bodies`, a buffer of their own: it is transferred. */
export interface Packed {
  readonly rows: readonly EventRow[];
  /** Of the bodies. */
  readonly sizes: readonly number[];
  readonly bodies: Uint8Array;
}

export interface Handled {
  readonly event: Event;
  readonly handling?: Handling | undefined;
}

export const NO_HANDLING: Handling = Object.freeze({});

function rowOf({ event, handling }: Handled): EventRow {
  const { id, source, type, team, user, clientUser, receivedAt, headers } = event;
  const isEmpty = handling === undefined || Object.keys(handling).length === 0;
  const text = isEmpty ? null : JSON.stringify(handling);
  return [id, source, type, team, user, clientUser, receivedAt, JSON.stringify(headers), text];
}

export function eventOf(row: EventRow, body: Buffer, seq: number): JournalEvent {
  const [id, source, type, team, user, clientUser, receivedAt, headers, handling] = row;
  return {
    seq,
    id,
    source,
    type,
    team,
    user,
    clientUser,
    receivedAt,
    headers: JSON.parse(headers) as Record<string, string>,
    handling: handling === null ? NO_HANDLING : (JSON.parse(handling) as Handling),
    body,
  };
}

/** The same event, with what it has to go without noted beside it. */
export function goingWithout(row: EventRow, redactions: readonly Redaction[]): EventRow {
  const [id, source, type, team, user, clientUser, receivedAt, headers, text] = row;
  const handling: Handling = { ...(text === null ? {} : (JSON.parse(text) as Handling)), redactions };
  return [id, source, type, team, user, clientUser, receivedAt, headers, JSON.stringify(handling)];
}

export function pack(events: readonly Handled[]): Packed {
  return packRows(
    events.map(rowOf),
    events.map(({ event }) => event.body),
  );
}

export function packRows(rows: readonly EventRow[], parts: readonly Uint8Array[]): Packed {
  const sizes = parts.map(({ length }) => length);
  // Never a slice of Node's pool: it is transferred, and the pool must not go with it.
  const bodies = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0));
  let at = 0;
  for (const part of parts) {
    bodies.set(part, at);
    at += part.length;
  }
  return { rows, sizes, bodies };
}

/** Bodies come back as views into the one buffer they travelled in. Each seq is 0. */
export function unpack(packed: Packed): JournalEvent[] {
  const bodies = bodiesOf(packed);
  return packed.rows.map((row, index) => eventOf(row, bodies[index] as Buffer, 0));
}

/** Without a copy. */
export function bodiesOf({ bodies, sizes }: Omit<Packed, 'rows'>): Buffer[] {
  const { buffer, byteOffset } = bodies;
  let at = byteOffset;
  return sizes.map((size) => {
    const body = Buffer.from(buffer, at, size);
    at += size;
    return body;
  });
}
