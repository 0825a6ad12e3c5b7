import type { Socket } from 'node:net';
import type { ConnectionCounts } from '../core/operations.ts';

/**
 * The connections of the open endpoint. When there are as many as may be, a new one takes the place of the one that has
 * been idle for longest: connections that only wait, whoever holds them, cannot keep senders out.
 */
export class Connections implements ConnectionCounts {
  readonly #max: number;
  /** Without a request in flight, idle for longest first. */
  readonly #idle = new Set<Socket>();
  /** Requests in flight on each of the others: several only when a sender does not wait for its answers. */
  readonly #busy = new Map<Socket, number>();
  evicted = 0;
  dropped = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get open(): number {
    return this.#idle.size + this.#busy.size;
  }

  /** A new one. @returns false when there was no place for it, and it is closed */
  add(socket: Socket): boolean {
    if (this.open >= this.#max && !this.#evict()) {
      this.dropped += 1;
      socket.destroy();
      return false;
    }
    this.#idle.add(socket);
    socket.once('close', () => this.#remove(socket));
    return true;
  }

  /** A request has begun on it. */
  begin(socket: Socket): void {
    if (this.#idle.delete(socket)) this.#busy.set(socket, 1);
    else {
      const requests = this.#busy.get(socket);
      if (requests !== undefined) this.#busy.set(socket, requests + 1);
    }
  }

  /** A request on it is answered. */
  end(socket: Socket): void {
    const requests = this.#busy.get(socket);
    if (requests === undefined) return;
    if (requests > 1) this.#busy.set(socket, requests - 1);
    else {
      this.#busy.delete(socket);
      this.#idle.add(socket);
    }
  }

  isIdle(socket: Socket): boolean {
    return this.#idle.has(socket);
  }

  #evict(): boolean {
    for (const socket of this.#idle) {
      this.#remove(socket);
      this.evicted += 1;
      socket.destroy();
      return true;
    }
    return false;
  }

  #remove(socket: Socket): void {
    if (!this.#idle.delete(socket)) this.#busy.delete(socket);
  }
}
