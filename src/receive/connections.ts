import type { Socket } from 'node:net';
import type { ConnectionCounts } from '../core/operations.ts';
import { Chain, type Linked } from '../lib/chain.ts';

class Connection implements Linked {
  readonly socket: Socket;
  /** Requests in flight; more than one only if a sender does not wait for its answers. */
  requests = 0;
  /** True after an authentic delivery, until a costly forged one. */
  isKnown = false;
  sooner: this | null = null;
  later: this | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
  }
}

/**
 * The connections of the open endpoint. At the limit, a new one replaces the one that has been idle for longest: idle
 * connections cannot keep senders out.
 */
export class Connections implements ConnectionCounts {
  /** Most at once. */
  readonly max: number;
  readonly #all = new Map<Socket, Connection>();
  /** Those without a request in flight, idle for longest first. */
  readonly #idle = new Chain<Connection>();
  evicted = 0;
  dropped = 0;

  constructor(max: number) {
    this.max = max;
  }

  get open(): number {
    return this.#all.size;
  }

  /** @returns false when there was no room, and the new connection is closed */
  add(socket: Socket): boolean {
    if (this.open >= this.max && !this.#evict()) {
      this.dropped += 1;
      socket.destroy();
      return false;
    }
    const connection = new Connection(socket);
    this.#all.set(socket, connection);
    this.#idle.add(connection);
    socket.once('close', () => this.#remove(connection));
    return true;
  }

  begin(socket: Socket): void {
    const connection = this.#all.get(socket);
    if (connection === undefined) return;
    connection.requests += 1;
    if (connection.requests === 1) this.#idle.remove(connection);
  }

  /** A request is answered. */
  end(socket: Socket): void {
    const connection = this.#all.get(socket);
    if (connection === undefined || connection.requests === 0) return;
    connection.requests -= 1;
    if (connection.requests === 0) this.#idle.add(connection);
  }

  isKnown(socket: Socket): boolean {
    return this.#all.get(socket)?.isKnown === true;
  }

  /** @returns whether that is a change */
  setKnown(socket: Socket, isKnown: boolean): boolean {
    const connection = this.#all.get(socket);
    if (connection === undefined || connection.isKnown === isKnown) return false;
    connection.isKnown = isKnown;
    return true;
  }

  isIdle(socket: Socket): boolean {
    return this.#all.get(socket)?.requests === 0;
  }

  #evict(): boolean {
    const { first } = this.#idle;
    if (first === null) return false;
    this.#remove(first);
    this.evicted += 1;
    first.socket.destroy();
    return true;
  }

  #remove(connection: Connection): void {
    if (this.#all.delete(connection.socket)) this.#idle.remove(connection);
  }
}
