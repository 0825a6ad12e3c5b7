import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

type OnIncoming = (request: IncomingMessage, keepAlive: boolean) => number;

/** With this result of `onIncoming`, node's HTTP parser stops. */
const STOP = -1;

const stopped = new WeakSet<IncomingMessage>();
const stoppedSockets = new WeakSet<Socket>();

interface Parser {
  onIncoming?: OnIncoming;
  /** Copies the packet, for the error of a malformed request. */
  getCurrentBuffer?: () => Buffer;
  /** Under `kOnBody` of its class: called with each piece of a body. */
  [hook: number]: unknown;
  readonly constructor: { readonly kOnBody?: unknown };
}

const NOTHING = Buffer.alloc(0);
const noPacket = (): Buffer => NOTHING;

/**
 * Enables `stopParsing` on a connection. Node has no public way to stop its parser within a packet: it splits one of 64 KiB
 * into 10,000 chunks, at 1 µs each, for a request that is answered already. Does nothing in a later version of node without
 * this hook.
 */
export function watchParser(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: Parser };
  const onIncoming = parser?.onIncoming;
  if (parser === undefined || typeof onIncoming !== 'function') return;
  // A parser can come from an earlier connection.
  delete parser.getCurrentBuffer;
  parser.onIncoming = (request, keepAlive) => {
    const treatment = onIncoming(request, keepAlive);
    if (treatment !== 0 || !stopped.has(request)) return treatment;
    stoppedSockets.add(socket);
    parser.getCurrentBuffer = noPacket;
    return STOP;
  };
}

/** Leaves the body and everything after it unparsed. Only before the listener of the request has returned. */
export function stopParsing(request: IncomingMessage): void {
  stopped.add(request);
}

/**
 * Makes the parser drop the rest of a body without a call for each piece, which takes 1 µs even for one byte. For a request
 * whose connection is closed with its answer.
 */
export function skipBody({ socket }: IncomingMessage): void {
  const { parser } = socket as Socket & { parser?: Parser | null };
  const hook = parser?.constructor.kOnBody;
  if (!parser || typeof hook !== 'number' || parser[hook] === null) return;
  const onBody = parser[hook];
  parser[hook] = null;
  // Other connections use the parser again, also those of other servers.
  socket.once('close', () => (parser[hook] = onBody));
}

/** Whether the parser of this connection was stopped, which node reports as an error. */
export function isStopped(socket: Socket): boolean {
  return stoppedSockets.has(socket);
}
