import type { JournalEvent } from '../../core/event.ts';
import { propertiesOf } from '../message.ts';

/** One record. */
export interface Message {
  /** Events of one key lie in one partition, in order; null: in any. */
  readonly key: Buffer | null;
  /** Null removes the record of the key from a compacted topic. */
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: Buffer, value: Buffer | string])[];
}

/** The record for one event, with its envelope as headers. */
export function toMessage(event: JournalEvent, value: Buffer, isZipped: boolean): Message {
  const { user } = event;
  const properties = Object.entries(propertiesOf(event, isZipped));
  const headers = properties.map(([name, text]) => [Buffer.from(name), text] as const);
  const key = user === null || user === '' ? null : Buffer.from(user.toWellFormed());
  return { key, value, headers };
}

/** Largest overhead of a batch beside its records, and of a record beside its bytes. */
export const [BATCH_BYTES, RECORD_BYTES] = [61, 12];
