import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { messageOf, MillraceError } from '../core/errors.ts';
import { createFallback, type Refuse } from './fallback.ts';
import type { ReceiverLimits } from './limits.ts';

/**
 * An HTTP server with every limit set. Deliveries go to `deliver` straight from node:http, which is nearly twice as fast
 * as a route of express; express stands behind it for everything else.
 */
export function createReceivingServer(
  path: string,
  limits: ReceiverLimits,
  deliver: (request: IncomingMessage, response: ServerResponse) => void,
  refuse: Refuse,
): Server {
  const fallback = createFallback(path, deliver, refuse);
  const withQuery = `${path}?`;
  const dispatch = (request: IncomingMessage, response: ServerResponse): void => {
    const url = request.url ?? '';
    if (request.method === 'POST' && (url === path || url.startsWith(withQuery))) deliver(request, response);
    // Express does not even look at an address that is none, and answers in HTML.
    else if (!URL.canParse(url, 'http://localhost'))
      refuse(request, response, 'not_found', 'nothing is here');
    else fallback(request, response);
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
  server.maxConnections = limits.maxConnections;
  server.maxRequestsPerSocket = limits.maxRequestsPerSocket;
  // Without this listener node sends `100 Continue` before anyone has looked at Content-Length.
  server.on('checkContinue', dispatch);
  return server;
}

/** @returns the port. @throws MillraceError `address_unavailable` */
export async function listen(
  server: Server,
  host: string,
  port: number,
  reusePort: boolean,
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error): void => {
      const address = `${bracketed(host)}:${port}`;
      reject(new MillraceError('address_unavailable', `${address}: ${messageOf(error)}`, { cause: error }));
    };
    server.once('error', fail);
    server.listen({ port, host, reusePort }, () => {
      server.off('error', fail);
      resolve();
    });
  });
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : port;
}

/** An URL that can be called from this machine. */
export function urlOf(host: string, port: number, path: string): string {
  const callable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : bracketed(host);
  return `http://${callable}:${port}${path}`;
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
