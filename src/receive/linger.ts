import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/clock.ts';

/** A rest of a body up to this size is read and forgotten, so that the connection can be used again. */
const SMALL = 64 * 1024;

/** Whether so much of the body is unread that the connection is better closed. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.readableEnded) return false;
  // Node throws away only what nobody began to read; half of a body would block the connection.
  if (request.readableDidRead) return true;
  if (request.complete) return false;
  const { headers } = request;
  if (headers['transfer-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > SMALL;
}

/**
 * Makes the coming end of this connection a gentle one. Closing a socket with unread bytes in it resets the connection,
 * and a reset can overtake the answer: the sender would see a broken pipe instead of our 413. So only our side is
 * closed first; what still arrives is thrown away until the sender has closed its side or its time is up.
 */
export function lingerOnClose(request: IncomingMessage, clock: Clock, lingerTimeout: number): void {
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    request.resume();
    const cancel = clock.after(lingerTimeout, () => socket.destroy());
    socket.once('close', cancel);
  };
}
