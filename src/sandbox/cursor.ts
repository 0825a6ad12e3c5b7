import { Refusal } from './refusal.ts';

/** Cursors are opaque to clients: what follows a place in a list. */
export function writeCursor(place: number): string {
  return Buffer.from(`place:${place}`).toString('base64url');
}

/** @throws Refusal 422 when it is none of ours */
export function readCursor(cursor: string): number {
  const match = /^place:(\d+)$/.exec(Buffer.from(cursor, 'base64url').toString());
  if (match === null) {
    throw new Refusal(422, [{ loc: ['query', 'next_cursor'], msg: 'Unknown cursor', type: 'value_error' }]);
  }
  return Number(match[1]);
}
