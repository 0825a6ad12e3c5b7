import type { JournalEvent } from '../../core/event.ts';
import { metadataOf } from '../message.ts';

/** One record. */
export interface Message {
  /** Events of one key lie in one partition, in order; null: in any. */
  readonly key: Buffer | null;
  /** Null takes out of a compacted topic what is kept under the key. */
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: Buffer, value: Buffer | string])[];
}

const PLAIN = {};
const ZIPPED = { 'content-encoding': 'gzip' };

/** The record for one event, with its envelope as headers. */
export function toMessage(event: JournalEvent, value: Buffer, isZipped: boolean): Message {
  const { user } = event;
  const metadata = metadataOf(event, isZipped ? ZIPPED : PLAIN, wellFormed);
  const headers = Object.entries(metadata).map(([name, text]) => [Buffer.from(name), text] as const);
  const key = user === null || user === '' ? null : Buffer.from(wellFormed(user));
  return { key, value, headers };
}

function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** What a batch takes beside its records, and a record beside its bytes, at most. */
export const [BATCH_BYTES, RECORD_BYTES] = [61, 12];
