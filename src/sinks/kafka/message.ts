import type { JournalEvent } from '../../core/event.ts';
import { isZipped, metadataOf, zip, type Compression } from '../message.ts';

/** One record. */
export interface Message {
  /** Events of one key lie in one partition, in order; null: in any. */
  readonly key: Buffer | null;
  /** Null takes out of a compacted topic what is kept under the key. */
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: Buffer, value: Buffer])[];
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
  const headers = Object.entries(metadata).map(
    ([name, value]) => [Buffer.from(name), Buffer.from(value)] as const,
  );
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

/** What a batch takes beside its records. */
export const BATCH_BYTES = 61;
/** Most bytes of the lengths, the offset and the time of a record; of the two lengths of a header. */
const [RECORD_BYTES, HEADER_BYTES] = [36, 10];

/** Bytes that the record takes in a batch before compression, hardly more than it really does. */
export function recordBytes({ key, value, headers }: Message): number {
  let bytes = RECORD_BYTES + (key?.length ?? 0) + (value?.length ?? 0);
  for (const [name, text] of headers) bytes += HEADER_BYTES + name.length + text.length;
  return bytes;
}
