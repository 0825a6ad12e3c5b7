import { createHmac } from 'node:crypto';

/**
 * Stands for the id of an event where the id is noted for longer than the event is kept, and nobody can say any more whose
 * event it was: an erasure could not find it there. Who has the id finds what was noted of it; from the hash nobody makes the id.
 * @param key hex, random, and kept beside what is noted
 * @returns 32 hex digits
 */
export function hashedId(key: string, id: string): string {
  return createHmac('sha256', Buffer.from(key, 'hex')).update(id).digest('hex').slice(0, 32);
}
