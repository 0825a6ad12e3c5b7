import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import { messageOf, MillraceError } from '../core/errors.ts';
import { bracketed, callable, createServer, startListening } from '../lib/listen.ts';
import type { Connections } from './connections.ts';
import { createReading, type Documents, type Refuse } from './documents.ts';
import type { ReceiverLimits } from './options.ts';
import { isStopped, watchParser } from './parser.ts';

/** What a server hands on. */
export interface Handlers {
  readonly deliver: (request: IncomingMessage, response: ServerResponse) => void;
  readonly refuse: Refuse;
  readonly documents: Documents | undefined;
  readonly connections: Connections;
  /** Told of what was refused before the request was complete. */
  readonly onMalformed: (code: 'request_malformed' | 'too_slow') => void;
}

/**
 * An HTTP server with every limit set. Deliveries go to `deliver` straight from node:http, which is nearly twice as fast
 * as a route of express; express stands behind it for everything else.
 */
export function createReceivingServer(path: string, limits: ReceiverLimits, handlers: Handlers): Server {
  const { deliver, refuse, documents, connections, onMalformed } = handlers;
  const read = documents === undefined ? null : createReading(documents, refuse);
  const fallback = createFallback(path, deliver, refuse);
  const withQuery = `${path}?`;
  const dispatch = (request: IncomingMessage, response: ServerResponse): void => {
    connections.begin(request.socket);
    const url = request.url ?? '';
    const oddity = oddityOf(request);
    if (oddity !== null) refuse(request, response, 'request_malformed', oddity);
    else if (request.method === 'POST' && (url === path || url.startsWith(withQuery)))
      deliver(request, response);
    // Express does not even look at an address that is none, and answers in HTML.
    else if (!URL.canParse(url, 'http://localhost'))
      refuse(request, response, 'not_found', 'there is nothing at this path');
    else if (read?.(request, response) !== true) fallback(request, response);
  };
  const server = createServer(
    {
      headersTimeout: limits.headersTimeout,
      // Our own deadline answers first; this one is for requests that never got so far as to be handled.
      requestTimeout: limits.headersTimeout + limits.bodyTimeout + limits.lingerTimeout,
      keepAliveTimeout: limits.keepAliveTimeout,
      connectionsCheckingInterval: limits.checkInterval,
      maxHeaderSize: limits.maxHeaderBytes,
    },
    dispatch,
  );
  // Or node drops the request of a sender that has closed its side. The types do not know it.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('connection', (socket) => {
    if (connections.add(socket)) watchParser(socket);
  });
  // Without this listener node sends `100 Continue` before anyone has looked at the headers.
  server.on('checkContinue', dispatch);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // It has its answer, and its time to read it.
    if (isStopped(socket)) return;
    const status = STATUS_OF[error.code ?? ''] ?? '400 Bad Request';
    if (socket.writable && error.code !== 'ECONNRESET') {
      if (connections.isIdle(socket))
        onMalformed(error.code === TIMED_OUT ? 'too_slow' : 'request_malformed');
      socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
    }
    socket.destroy(error);
  });
  return server;
}

/**
 * Everything that is not the plain case: other methods, other paths, and spellings of the right path that the fast
 * comparison in front does not know (upper case, a slash at the end, absolute URLs).
 */
function createFallback(
  path: string,
  deliver: (request: IncomingMessage, response: ServerResponse) => void,
  refuse: Refuse,
): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const route = path.replace(/[{}()[\]+?!:*\\]/g, '\\$&');
  app.post(route, deliver);
  app.all(route, (request, response) => {
    response.setHeader('allow', 'POST');
    refuse(request, response, 'method_not_allowed', 'deliveries are POST requests');
  });
  app.use((request, response) => refuse(request, response, 'not_found', 'there is nothing at this path'));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    // A path that cannot be decoded is a 400 to express; what else comes here is a fault of ours.
    if (error instanceof URIError || (error instanceof Error && 'status' in error && error.status === 400))
      refuse(request, response, 'not_found', 'there is nothing at this path');
    else refuse(request, response, 'internal', 'the request could not be handled');
  });
  return app;
}

const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';
const STATUS_OF: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  [TIMED_OUT]: '408 Request Timeout',
};

/**
 * What two servers can read in two ways, which is how a request is smuggled past one of them: node takes the first of two
 * Host headers, chunks from a sender whose HTTP has none, and codings that it does not undo.
 */
function oddityOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return `HTTP/${httpVersion} is not spoken here`;
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && httpVersion === '1.0') return 'HTTP/1.0 has no Transfer-Encoding';
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 'Transfer-Encoding must be chunked';
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1 ? 'there is more than one Host header' : null;
}

/** @returns the port. @throws MillraceError `address_unavailable` */
export function listen(server: Server, host: string, port: number, reusePort: boolean): Promise<number> {
  return startListening(server, { port, host, reusePort }).catch((error: unknown) => {
    const detail = `${bracketed(host)}:${port} (server.host and server.port, or MILLRACE_SERVER_PORT): ${messageOf(error)}`;
    throw new MillraceError('address_unavailable', detail, { cause: error });
  });
}

/** An URL that can be called from this machine. */
export function urlOf(host: string, port: number, path: string): string {
  return callable(`http://${bracketed(host)}:${port}${path}`);
}
