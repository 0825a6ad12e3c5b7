import type { EnvelopeField } from '../definition.ts';
import { isTimestamp } from './column-types.ts';
import { usualTime } from './time.ts';

/** What an event says of its document. */
export type RowEnvelope = Readonly<
  Record<'event_id' | 'event_type' | 'received_at', string> &
    Record<'team_id' | 'user_id' | 'client_user_id', string | null>
>;

const NOTHING = new Uint8Array(0);

/** The envelope's values as JSON. The bytes of a value are the same object as long as it does not change. */
export class EnvelopeValues {
  #envelope: RowEnvelope | null = null;
  readonly #values = new Map<EnvelopeField, { readonly text: string | null; readonly bytes: Uint8Array }>();

  set(envelope: RowEnvelope): void {
    this.#envelope = envelope;
  }

  /** No bytes for a value that the event does not have, and for a time that is invalid. */
  of(field: EnvelopeField): Uint8Array {
    const text = this.#envelope?.[field === 'resource' ? 'event_type' : field] ?? null;
    const last = this.#values.get(field);
    if (last?.text === text) return last.bytes;
    const bytes = text === null ? NOTHING : bytesOf(field, text);
    this.#values.set(field, { text, bytes });
    return bytes;
  }
}

/** U+FFFD replaces what DuckDB or PostgreSQL refuses. */
function bytesOf(field: EnvelopeField, text: string): Uint8Array {
  const value = field === 'resource' ? resourceOf(text) : text;
  const json = Buffer.from(JSON.stringify(value.replaceAll('\0', '\ufffd').toWellFormed()));
  if (field !== 'received_at') return json;
  return isTimestamp(json, 0, json.length) ? usualTime(json) : NOTHING;
}

/** The document that an event type names: the type without `daily.data.` and the verb. */
function resourceOf(eventType: string): string {
  return eventType.replace(/^(?:daily|historical)\.data\./, '').replace(/\.[^.]*$/, '');
}
