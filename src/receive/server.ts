import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import { messageOf, MillraceError } from '../core/errors.ts';
import { bracketed, callable, createServer, startListening } from '../lib/listen.ts';
import type { Connections } from './connections.ts';
import { createReading, type Documents, type Refuse } from './documents.ts';
import type { ReceiverLimits } from './options.ts';
import { isStopped, watchParser } from './parser.ts';

export interface Handlers {
  readonly deliver: (request: IncomingMessage, response: ServerResponse) => void;
  readonly refuse: Refuse;
  readonly documents: Documents | undefined;
  readonly connections: Connections;
  /** Called for a request that was refused before it was complete. */
  readonly onMalformed: (code: 'request_malformed' | 'too_slow') => void;
}

/**
 * An HTTP server with all limits. Deliveries go directly from node:http to `deliver`, which is nearly twice as fast as a
 * route of express; express handles everything else.
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
    // Express would answer an invalid URL in HTML.
    else if (!URL.canParse(url, 'http://localhost'))
      refuse(request, response, 'not_found', 'there is nothing at this path');
    else if (read?.(request, response) !== true) fallback(request, response);
  };
  const server = createServer(
    {
      headersTimeout: limits.headersTimeout,
      // For requests that are never handled; for others our deadline comes first.
      requestTimeout: limits.headersTimeout + limits.bodyTimeout + limits.lingerTimeout,
      keepAliveTimeout: limits.keepAliveTimeout,
      connectionsCheckingInterval: limits.checkInterval,
      maxHeaderSize: limits.maxHeaderBytes,
    },
    dispatch,
  );
  // Otherwise node drops the request of a sender that has closed its side. Missing in the types.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('connection', (socket) => {
    if (connections.add(socket)) watchParser(socket);
  });
  // Without this listener node sends `100 Continue` before the headers are checked.
  server.on('checkContinue', dispatch);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // It was answered, and has time to read the answer.
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

/** Handles other methods, other paths, and other spellings of the path: upper case, a slash at the end, absolute URLs. */
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
    // For a path that cannot be decoded express has a 400; other errors are faults of this program.
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
 * Why two servers could read the request differently, which lets a request pass one of them unseen: node accepts the first
 * of two Host headers, chunks in HTTP/1.0, and codings that it does not decode. Null for most requests.
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

/** A URL that works on this machine. */
export function listeningUrl(host: string, port: number, path: string): string {
  return callable(`http://${bracketed(host)}:${port}${path}`);
}
