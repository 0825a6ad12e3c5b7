import { BACKSLASH, QUOTE } from '../../lib/json-text.ts';
import type { EnvelopeField } from '../definition.ts';
import { cutTime } from './cut-time.ts';
import { fitsTimestamp } from './fit.ts';

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

/** The envelope's values as JSON, made when asked for and kept for as long as they stay the same. */
export class EnvelopeValues {
  #envelope: RowEnvelope | null = null;
  readonly #texts = new Map<EnvelopeField, string | null>();
  readonly #values = new Map<EnvelopeField, Uint8Array>();

  set(envelope: RowEnvelope): void {
    this.#envelope = envelope;
  }

  /** No bytes for what the event does not say. */
  of(field: EnvelopeField): Uint8Array {
    const text = this.#envelope?.[field === 'resource' ? 'event_type' : field] ?? null;
    if (this.#texts.get(field) === text) return this.#values.get(field) ?? NOTHING;
    this.#texts.set(field, text);
    const made = text === null ? NOTHING : jsonOf(field === 'resource' ? resourceOf(text) : text);
    const value = field === 'received_at' ? timeOf(made) : made;
    this.#values.set(field, value);
    return value;
  }
}

function timeOf(text: Uint8Array): Uint8Array {
  return fitsTimestamp(text, 0, text.length) ? cutTime(text) : NOTHING;
}

/** What an event is of: its type without where it came from and what happened. */
export function resourceOf(eventType: string): string {
  return eventType.replace(/^(?:daily|historical)\.data\./, '').replace(/\.[^.]*$/, '');
}

/** As rows hold texts: what DuckDB or PostgreSQL refuses becomes U+FFFD. */
function jsonOf(text: string): Uint8Array {
  const { length } = text;
  const bytes = new Uint8Array(length + 2);
  bytes[0] = QUOTE;
  for (let i = 0; i < length; i += 1) {
    const c = text.charCodeAt(i);
    if (c < 0x20 || c > 0x7e || c === QUOTE || c === BACKSLASH)
      return Buffer.from(JSON.stringify(text.replaceAll('\0', '\ufffd').toWellFormed()));
    bytes[i + 1] = c;
  }
  bytes[length + 1] = QUOTE;
  return bytes;
}
