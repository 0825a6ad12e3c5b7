import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { ListenOptions, Server } from 'node:net';

/** Of `node:http`. A named import would load all of the module, WebSockets and `fetch` included: a tenth of the time of a start. */
export const { createServer } = process.getBuiltinModule('node:http');

/** @returns the port once the server listens @throws the system's error */
export async function startListening(
  server: Server,
  options: ListenOptions & { readonly port: number },
): Promise<number> {
  server.listen(options);
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : options.port;
}

/** Ends all connections, and closes the server; it may be closed already. */
export function closeNow(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** A host as in a URL: IPv6 in brackets. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** The URL with 127.0.0.1 for the address of all interfaces, which cannot be called. */
export function callable(url: string): string {
  return url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=[:/]|$)/, '//127.0.0.1');
}
