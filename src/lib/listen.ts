import { once } from 'node:events';
import type { ListenOptions, Server } from 'node:net';

/**
 * That of `node:http`. Whoever imports it by name has Node load all that the module offers, WebSockets and `fetch` among it, which
 * is a tenth of what a start takes.
 */
export const { createServer } = process.getBuiltinModule('node:http');

/** Begins to listen. @returns the port. @throws the system's error */
export async function startListening(
  server: Server,
  options: ListenOptions & { readonly port: number },
): Promise<number> {
  server.listen(options);
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : options.port;
}

/** A host as it stands in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** An `http:` URL that can be called from this machine: the address of every interface is no address to go to. */
export function callable(url: string): string {
  return url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=[:/]|$)/, '//127.0.0.1');
}
