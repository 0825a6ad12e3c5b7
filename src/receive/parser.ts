import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

type OnIncoming = (request: IncomingMessage, keepAlive: boolean) => number;

/** What node's HTTP parser takes as an error of whoever it has told of a request: it then reads nothing more. */
const STOP = -1;

const stopped = new WeakSet<IncomingMessage>();
const stoppedSockets = new WeakSet<Socket>();

interface Parser {
  onIncoming?: OnIncoming;
  /** A copy of the packet, for the error of a request that is no HTTP. */
  getCurrentBuffer?: () => Buffer;
  /** Under `kOnBody` of its class: what is told of each piece of a body. */
  [hook: number]: unknown;
  readonly constructor: { readonly kOnBody?: unknown };
}

const NOTHING = Buffer.alloc(0);
const noPacket = (): Buffer => NOTHING;

/**
 * Lets `stopParsing` work on a connection. Node has no public way to stop its parser within a packet, and continues to cut
 * one of 64 KiB into 10,000 chunks, at 1 µs each, for a request that is answered already. Does nothing where a later
 * version of node has no such hook.
 */
export function watchParser(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: Parser };
  const tell = parser?.onIncoming;
  if (parser === undefined || typeof tell !== 'function') return;
  // Parsers are used again.
  delete parser.getCurrentBuffer;
  parser.onIncoming = (request, keepAlive) => {
    const treatment = tell(request, keepAlive);
    if (treatment !== 0 || !stopped.has(request)) return treatment;
    stoppedSockets.add(socket);
    parser.getCurrentBuffer = noPacket;
    return STOP;
  };
}

/** Leaves the body unparsed, and whatever comes after it. Only before the listener of the request has returned. */
export function stopParsing(request: IncomingMessage): void {
  stopped.add(request);
}

/**
 * Lets the parser throw away what is left of a body without a call for each piece, which takes 1 µs for one of a byte. For a
 * request whose connection is closed with its answer.
 */
export function skipBody({ socket }: IncomingMessage): void {
  const { parser } = socket as Socket & { parser?: Parser | null };
  const hook = parser?.constructor.kOnBody;
  if (!parser || typeof hook !== 'number' || parser[hook] === null) return;
  const onBody = parser[hook];
  parser[hook] = null;
  // Parsers are used again, by other servers too.
  socket.once('close', () => (parser[hook] = onBody));
}

/** Whether what is wrong on this connection is only that its parser was stopped. */
export function isStopped(socket: Socket): boolean {
  return stoppedSockets.has(socket);
}
