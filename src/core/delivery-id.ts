import { createHmac, hash } from 'node:crypto';
import type { Event } from './event.ts';

const DELIVERY_ID = /^[\x21-\x7e]{1,256}$/;

/** 1 to 256 visible ASCII characters: an id goes into log lines, message properties and file columns. */
export function isDeliveryId(id: string): boolean {
  return DELIVERY_ID.test(id);
}

/** The id of a delivery without one: equal bodies are the same event. Lower-case hex. */
export function bodyId(body: Buffer): string {
  return hash('sha256', body, 'hex');
}

/** A foreign id; one that is not a valid delivery id is replaced by its hash, so that different ids stay different. */
export function deliveryIdOf(given: string): string {
  return isDeliveryId(given) ? given : `sha256_${hash('sha256', given, 'hex')}`;
}

/** Identifies a message of the service's pipelines within its source: their key is unique only for one user and type. */
export function messageKey({
  source,
  user,
  type,
  id,
}: Pick<Event, 'source' | 'user' | 'type' | 'id'>): string {
  return JSON.stringify([source, user, type, id]);
}

/**
 * Replaces an event id in notes that outlive the event: an erasure could not find the id there, since nothing says whose it is.
 * @param key hex, random, kept beside the notes
 * @returns 32 hex digits
 */
export function hashedId(key: string, id: string): string {
  return createHmac('sha256', Buffer.from(key, 'hex')).update(id).digest('hex').slice(0, 32);
}
