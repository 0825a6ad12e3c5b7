import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { FaultList, InjectedFault } from './fault-list.ts';

/**
 * A vendor's broker in this process, on a real port, with faults on demand.
 *
 * Modes: listening ⇄ stopped (`stop` cuts every connection; `restart` listens on the same port, messages kept).
 */
export abstract class BrokerPeer<Fault extends { readonly times?: number }> {
  protected readonly sockets = new Set<Socket>();
  readonly #faults: FaultList<Fault>;
  #server: Server | null = null;
  #port: number;

  /** @param port 0 takes any free one */
  protected constructor(faults: FaultList<Fault>, port = 0) {
    this.#faults = faults;
    this.#port = port;
  }

  get port(): number {
    return this.#port;
  }

  inject(fault: Fault): InjectedFault {
    return this.#faults.inject(fault);
  }

  /** The same, before those that were injected already. */
  injectFirst(fault: Fault): InjectedFault {
    return this.#faults.inject(fault, 0);
  }

  /** Cuts every connection as a network failure would; clients can connect again at once. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Cuts every connection and refuses new ones. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    const closed = once(server, 'close');
    server.close();
    this.cut();
    await closed;
  }

  async restart(): Promise<void> {
    if (this.#server !== null) return;
    const server = this.listen(this.#port);
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
  }

  /** A server that has begun to listen on this machine. */
  protected abstract listen(port: number): Server;
}
