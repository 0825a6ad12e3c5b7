import type { Server } from 'node:http';
import { bind } from './client.ts';
import { here } from './world.ts';

export { createServer } from 'node:http';

/** No port is opened: who wants to connect finds the server in the world. */
export async function startListening(server: Server, { port }: { readonly port: number }): Promise<number> {
  const { servers, scheduler } = here();
  servers.set(port, server);
  bind(server, scheduler.life);
  scheduler.asker()?.atEnd(() => {
    if (servers.get(port) === server) servers.delete(port);
  });
  return Promise.resolve(port);
}

export function closeNow(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

export function bracketed(host: string): string {
  return host;
}

export function callable(url: string): string {
  return url;
}
