import { BACKSLASH, QUOTE } from '../../lib/json-text.ts';
import type { EnvelopeField } from '../definition.ts';
import { usualTime } from './time.ts';
import { isTimestamp } from './column-types.ts';

/** What an event says around its document. */
export interface RowEnvelope {
  readonly event_id: string;
  readonly event_type: string;
  readonly received_at: string;
  readonly team_id: string | null;
  readonly user_id: string | null;
  readonly client_user_id: string | null;
}

const NOTHING = new Uint8Array(0);

/** A value of the envelope as it was last asked for. */
interface Value {
  text: string | null;
  bytes: Uint8Array;
}

/** The envelope's values as JSON, made when asked for and kept for as long as they stay the same. */
export class EnvelopeValues {
  #envelope: RowEnvelope | null = null;
  readonly #values: Readonly<Record<EnvelopeField, Value>> = {
    event_id: nothing(),
    event_type: nothing(),
    resource: nothing(),
    received_at: nothing(),
    team_id: nothing(),
    user_id: nothing(),
    client_user_id: nothing(),
  };

  set(envelope: RowEnvelope): void {
    this.#envelope = envelope;
  }

  /** No bytes for what the event does not say. */
  of(field: EnvelopeField): Uint8Array {
    const text = this.#envelope?.[field === 'resource' ? 'event_type' : field] ?? null;
    const value = this.#values[field];
    if (value.text === text) return value.bytes;
    const made = text === null ? NOTHING : jsonOf(field === 'resource' ? resourceOf(text) : text);
    value.text = text;
    value.bytes = field === 'received_at' ? timeOf(made) : made;
    return value.bytes;
  }
}

function nothing(): Value {
  return { text: null, bytes: NOTHING };
}

function timeOf(text: Uint8Array): Uint8Array {
  return isTimestamp(text, 0, text.length) ? usualTime(text) : NOTHING;
}

/** What an event is of: its type without where it came from and what happened. */
export function resourceOf(eventType: string): string {
  return eventType.replace(/^(?:daily|historical)\.data\./, '').replace(/\.[^.]*$/, '');
}

/** As rows hold texts: what DuckDB or PostgreSQL refuses becomes U+FFFD. */
export function textInRow(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

function jsonOf(text: string): Uint8Array {
  const { length } = text;
  const bytes = new Uint8Array(length + 2);
  bytes[0] = QUOTE;
  for (let i = 0; i < length; i += 1) {
    const c = text.charCodeAt(i);
    if (c < 0x20 || c > 0x7e || c === QUOTE || c === BACKSLASH)
      return Buffer.from(JSON.stringify(textInRow(text)));
    bytes[i + 1] = c;
  }
  bytes[length + 1] = QUOTE;
  return bytes;
}
