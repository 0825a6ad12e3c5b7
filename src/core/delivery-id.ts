import { createHmac, hash } from 'node:crypto';
import type { Event } from './event.ts';

const DELIVERY_ID = /^[\x21-\x7e]{1,256}$/;

/** A delivery id is 1 to 256 visible ASCII characters: it goes into log lines, message properties and file columns. */
export function isDeliveryId(id: string): boolean {
  return DELIVERY_ID.test(id);
}

/** The id of a delivery whose sender gives none: equal bodies are the same event. Lower-case hex. */
export function bodyId(body: Buffer): string {
  return hash('sha256', body, 'hex');
}

/**
 * An id that others have given, as ids are here: one that is not well-formed is replaced by its hash. Nobody can be asked
 * to send the event again under another, and two that differ stay two.
 */
export function deliveryIdOf(given: string): string {
  return isDeliveryId(given) ? given : `sha256_${hash('sha256', given, 'hex')}`;
}

/** What tells a message of the service's pipelines from all others of its source: their key is unique only within one user and one type. */
export function messageKey({
  source,
  user,
  type,
  id,
}: Pick<Event, 'source' | 'user' | 'type' | 'id'>): string {
  return JSON.stringify([source, user, type, id]);
}

/**
 * Stands for the id of an event where the id is noted for longer than the event is kept, and nobody can say any more whose
 * event it was: an erasure could not find it there. Who has the id finds what was noted of it; from the hash nobody makes the id.
 * @param key hex, random, and kept beside what is noted
 * @returns 32 hex digits
 */
export function hashedId(key: string, id: string): string {
  return createHmac('sha256', Buffer.from(key, 'hex')).update(id).digest('hex').slice(0, 32);
}
