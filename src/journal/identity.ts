import { hash } from 'node:crypto';
import { messageKey } from '../core/delivery-id.ts';
import type { RemovedEvent } from '../core/erasure.ts';
import { DIGEST_BYTES, KEY_BYTES, type EventHashes } from './segments/format.ts';
import { identityOf } from './segments/records.ts';

/**
 * Hashes of an event's identity and of its bytes. The digest of the bytes also depends on the part of the identity's hash that is
 * not stored: someone with the journal cannot try guesses of a body without knowing the id of its delivery.
 * @param identity source and id, as `identityOf` joins them
 */
export function eventHashesOf(identity: string | Uint8Array, bodyHash: string): EventHashes {
  const whole = hash('sha256', identity, 'binary');
  const key = whole.slice(0, KEY_BYTES);
  return { key, digest: digestOf(whole.slice(KEY_BYTES) + bodyHash, DIGEST_BYTES) };
}

/** The hashes an event may have here: it came as a delivery, or from a source that has keys of its own. */
export function possibleHashes({ bodyHash, ...event }: RemovedEvent): readonly EventHashes[] {
  const { source, id } = event;
  return [id, messageKey(event)].map((key) => eventHashesOf(identityOf(source, key), bodyHash));
}

/**
 * The first bytes of a SHA-256, a character for each. Of 2^32 keys of 12 bytes two are equal with a chance of 2^-33; to find a body
 * with a given digest of 8 bytes takes 2^64 tries. 12, because V8 copies a slice that short, and keeps the whole string of a
 * longer one.
 */
export function digestOf(data: string | Uint8Array, length: number = KEY_BYTES): string {
  return hash('sha256', data, 'binary').slice(0, length);
}

/** SHA-256, a character for each byte: a buffer takes longer to make. */
export function bodyHashOf(body: Uint8Array): string {
  return hash('sha256', body, 'binary');
}
