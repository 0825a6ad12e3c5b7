import type { EnvelopeField } from './definition.ts';
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

/** The envelope's values as JSON, made once an event and kept for as long as they stay the same. */
export class EnvelopeValues {
  readonly #texts = new Map<EnvelopeField, string | null>();
  readonly #values = new Map<EnvelopeField, Uint8Array>();

  set(envelope: RowEnvelope): void {
    this.#set('event_id', envelope.event_id);
    this.#set('received_at', envelope.received_at);
    this.#set('team_id', envelope.team_id);
    this.#set('user_id', envelope.user_id);
    this.#set('client_user_id', envelope.client_user_id);
    if (this.#texts.get('event_type') === envelope.event_type) return;
    this.#set('event_type', envelope.event_type);
    this.#set('resource', resourceOf(envelope.event_type));
  }

  /** No bytes for what the event does not say. */
  of(field: EnvelopeField): Uint8Array {
    return this.#values.get(field) ?? NOTHING;
  }

  #set(field: EnvelopeField, text: string | null): void {
    if (this.#texts.get(field) === text) return;
    this.#texts.set(field, text);
    const value = text === null ? NOTHING : jsonOf(text);
    const fits = field !== 'received_at' || fitsTimestamp(value, 0, value.length);
    this.#values.set(field, fits ? value : NOTHING);
  }
}

/** What an event is of: its type without where it came from and what happened. */
export function resourceOf(eventType: string): string {
  return eventType.replace(/^(?:daily|historical)\.data\./, '').replace(/\.[^.]*$/, '');
}

/** As rows hold texts: what DuckDB or PostgreSQL refuses becomes U+FFFD. */
function jsonOf(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(text.replaceAll('\0', '\ufffd').toWellFormed()));
}
