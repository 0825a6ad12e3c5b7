import type { JournalEvent } from '../../core/event.ts';
import { isZipped, metadataOf, zip, type Compression } from '../message.ts';

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

/**
 * The record for one event: its exact bytes, or the gzip of them, and its envelope as headers. Ids that are null leave no
 * header.
 */
export function toMessage(event: JournalEvent, compression: Compression): Message | Promise<Message> {
  const { body, user } = event;
  const zipped = isZipped(event, compression);
  const metadata = metadataOf(event, zipped ? ZIPPED : PLAIN, wellFormed);
  const headers = Object.entries(metadata).map(([name, value]) => [Buffer.from(name), value] as const);
  const key = user === null || user === '' ? null : Buffer.from(wellFormed(user));
  if (!zipped) return { key, value: body, headers };
  const packed = zip(body);
  return packed instanceof Promise
    ? packed.then((value) => ({ key, value, headers }))
    : { key, value: packed, headers };
}

function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** What a batch takes beside its records, and a record beside its bytes, at most. */
export const [BATCH_BYTES, RECORD_BYTES] = [61, 12];
