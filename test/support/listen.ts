import { once } from 'node:events';
import { createServer, type RequestListener, type Server as HttpServer } from 'node:http';
import type { AddressInfo, Server as TcpServer } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Server } from './server.ts';

/** Lets a server listen on a free port of this machine; returns the port. */
export async function listen(server: TcpServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Answers requests on a free port of this machine until the test ends; returns the address. */
export async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

/** Lets a server listen on a free port of this machine until it is stopped; it does not keep the process. */
export async function startHttp(server: HttpServer): Promise<Server> {
  const url = `http://127.0.0.1:${await listen(server.unref())}`;
  return {
    url,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
