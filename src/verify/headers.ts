import { createHash } from 'node:crypto';
import type { RequestHeaders } from '../core/verifier.ts';

const DELIVERY_ID = /^[\x21-\x7e]{1,256}$/;

/** The value of one header; a repeated one is joined as HTTP says. Absent and empty are the same: `null`. */
export function headerOf(headers: RequestHeaders, name: string): string | null {
  const value = headers[name];
  if (typeof value === 'string') return value === '' ? null : value;
  return value === undefined || value.length === 0 ? null : value.join(', ');
}

/** A delivery id is 1 to 256 visible ASCII characters: it goes into log lines, message properties and file columns. */
export function isDeliveryId(id: string): boolean {
  return DELIVERY_ID.test(id);
}

/** The id of a delivery whose sender gives none: equal bodies are the same event. Lower-case hex. */
export function bodyId(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}
