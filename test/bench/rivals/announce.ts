import type { Server } from 'node:http';

export const PATH = '/webhooks';

/** Says where a rival listens, in one line of JSON on stdout, and keeps its connections as the receiver does. */
export function announce(server: Server): void {
  server.keepAliveTimeout = 65_000;
  server.once('listening', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object')
      process.stdout.write(`${JSON.stringify({ port: address.port })}\n`);
  });
}
