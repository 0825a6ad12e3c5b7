import { hash } from 'node:crypto';
import { messageKey } from '../core/delivery-id.ts';
import type { TakenOut } from '../core/erasure.ts';
import { DIGEST_BYTES, KEY_BYTES, type KnownBy } from './segments/format.ts';
import { identityOf } from './segments/records.ts';

/**
 * By what an event is known. What stands for its bytes is made with the rest of the id's hash, of which nothing is kept: whoever has the
 * journal can try no guess of a body without the id of its delivery, also when the event is gone from here and so cannot be erased here.
 * @param identity of where it came in, and its id there
 */
export function knownBy(identity: string | Uint8Array, bodyHash: string): KnownBy {
  const whole = hash('sha256', identity, 'binary');
  const key = whole.slice(0, KEY_BYTES);
  return { key, digest: digestOf(whole.slice(KEY_BYTES) + bodyHash, DIGEST_BYTES) };
}

/** By what an event may be known here, whether it came as a delivery or from a source. */
export function allKnownBy({ bodyHash, ...event }: TakenOut): readonly KnownBy[] {
  const { source, id } = event;
  return [id, messageKey(event)].map((key) => knownBy(identityOf(source, key), bodyHash));
}

/**
 * What stands for where an event came in and its id there, a character for each byte: two of 2^32 meet with a chance of
 * 2^-33, and none can be made to fit. Twelve, because V8 copies a piece of a string that is so short, and keeps the whole of
 * a longer one. To make another body fit the eight that stand for one takes 2^64 tries.
 */
export function digestOf(data: string | Uint8Array, length: number = KEY_BYTES): string {
  return hash('sha256', data, 'binary').slice(0, length);
}

/** A character for each byte: a buffer has memory of its own, and takes longer. */
export function bodyHashOf(body: Uint8Array): string {
  return hash('sha256', body, 'binary');
}
