import type { Load } from './children.ts';
import type { LoadResult } from './load-child.ts';

/** What can be put under load. */
export interface Server {
  readonly port: number;
  /** CPU time of all its threads so far, seconds. */
  cpuSeconds(): number;
  /** Resolves when all that it has accepted is where it belongs. */
  untilDelivered(): Promise<void>;
  /** Ends it in order. @returns how many records it has kept, and how many ids they have; null when it keeps nothing */
  settle(): Promise<Kept | null>;
}

export interface Kept {
  readonly records: number;
  readonly ids: number;
}

/** What one flood has shown. */
export interface Lap {
  /** Answers a second. */
  readonly rate: number;
  /** Events a second until the last one is delivered. */
  readonly delivered: number;
  /** CPU of all threads for an event, until it is delivered, microseconds. */
  readonly cpu: number;
}

/** A server, and what has been measured on it. */
export class Contestant {
  readonly name: string;
  readonly server: Server;
  /** By round: those of the same round belong together. */
  readonly laps: Lap[] = [];
  /** Answers 202 so far. */
  accepted = 0;
  readonly #load: Load;
  readonly #connections: number;

  constructor(name: string, server: Server, load: Load, connections: number) {
    this.name = name;
    this.server = server;
    this.#load = load;
    this.#connections = connections;
  }

  /** Sends what was made last, as fast as it is answered. @param count of it */
  async flood(count: number): Promise<Lap> {
    const { server } = this;
    const cpu = server.cpuSeconds();
    const started = performance.now();
    const { elapsedMs } = await this.#run({ op: 'flood' });
    return {
      rate: (count * 1000) / elapsedMs,
      delivered: (count * 1000) / (performance.now() - started),
      cpu: ((server.cpuSeconds() - cpu) * 1e6) / count,
    };
  }

  /** Sends what was made last, `rate` a second at random times. */
  pace(rate: number): Promise<LoadResult> {
    return this.#run({ op: 'pace', rate });
  }

  async #run(order: { op: 'flood' } | { op: 'pace'; rate: number }): Promise<LoadResult> {
    const { port } = this.server;
    const result = await this.#load.run({ ...order, port, connections: this.#connections });
    this.accepted += result.statuses['202'] ?? 0;
    await this.server.untilDelivered();
    return result;
  }
}
