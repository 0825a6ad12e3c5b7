import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listen } from './listen.ts';

/**
 * Between clients and a server, over TCP.
 *
 * Modes: passing ⇄ swallowing (by `swallow`: requests reach the server, and at its next answer the connection is cut).
 */
export class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #swallowing = 0;

  private constructor(to: number) {
    this.#server = createServer((client) => this.#join(client, connect(to, '127.0.0.1')));
  }

  /** @returns the proxy, and the port it listens on */
  static async start(to: number): Promise<{ readonly proxy: CuttingProxy; readonly port: number }> {
    const proxy = new CuttingProxy(to);
    return { proxy, port: await listen(proxy.#server) };
  }

  /** The next answers do not arrive: their connections are cut instead. */
  swallow(answers: number): void {
    this.#swallowing = answers;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket, server: Socket): void {
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => {
      if (this.#swallowing === 0) {
        client.write(bytes);
        return;
      }
      this.#swallowing -= 1;
      client.destroy();
    });
  }
}
