import type { Load } from './children.ts';
import type { LoadResult } from './load-child.ts';

/** What can be put under load. */
export interface Server {
  readonly port: number;
  /** CPU time of all its threads so far, seconds. */
  cpuSeconds(): number;
  /** That of the thread that receives; left out where that is not one. */
  mainThreadSeconds?(): number;
  /** Resolves when all that it has accepted is where it belongs. */
  untilDelivered(): Promise<void>;
  /** Ends its process in order, and starts another that goes on; left out where nothing asks for it. */
  renew?(): Promise<void>;
  /** Ends it in order. @returns how many records it has kept, and how many ids they have; null when it keeps nothing */
  settle(): Promise<Kept | null>;
}

export interface Kept {
  readonly records: number;
  readonly ids: number;
}

/** One flood. */
export interface Flood {
  readonly events: number;
  /** Until the last answer, milliseconds. */
  readonly answered: number;
  /** Until the last event is delivered, milliseconds. */
  readonly delivered: number;
}

/** CPU time so far, seconds. */
interface Cpu {
  readonly all: number;
  readonly thread: number;
}

/** What the floods of a round have shown. */
export interface Lap {
  /** Answers a second. */
  readonly rate: number;
  /** Events a second until the last one is delivered. */
  readonly delivered: number;
  /** CPU of all threads for an event, until it is delivered, microseconds. */
  readonly cpu: number;
  /** Of that the thread that receives, NaN where that is not one. */
  readonly thread: number;
}

/** Floods of one server as one. What it did between them is in its CPU time, and in no rate. */
export function lapOf(floods: readonly Flood[], before: Cpu, after: Cpu): Lap {
  const sum = (of: (flood: Flood) => number): number => floods.reduce((total, one) => total + of(one), 0);
  const events = sum((flood) => flood.events);
  return {
    rate: (events * 1000) / sum(({ answered }) => answered),
    delivered: (events * 1000) / sum(({ delivered }) => delivered),
    cpu: ((after.all - before.all) * 1e6) / events,
    thread: ((after.thread - before.thread) * 1e6) / events,
  };
}

/** A server, and what has been measured on it. */
export class Contestant {
  readonly name: string;
  readonly server: Server;
  /** By round: those of the same round belong together. */
  readonly laps: Lap[] = [];
  /** Those of the receiver that belong to them. */
  readonly beside: Lap[];
  /** Its rate as a multiple of the receiver's, turn by turn; none where rounds are whole. */
  readonly turns: number[] = [];
  /** Answers 202 so far. */
  accepted = 0;
  readonly #load: Load;
  readonly #connections: number;

  constructor(name: string, server: Server, load: Load, connections: number, beside: Lap[] = []) {
    this.name = name;
    this.beside = beside;
    this.server = server;
    this.#load = load;
    this.#connections = connections;
  }

  /** Sends what was made last, as fast as it is answered. @param count of it */
  async flood(count: number): Promise<Flood> {
    const started = performance.now();
    const { elapsedMs } = await this.#run({ op: 'flood' });
    return { events: count, answered: elapsedMs, delivered: performance.now() - started };
  }

  cpu(): Cpu {
    return { all: this.server.cpuSeconds(), thread: this.server.mainThreadSeconds?.() ?? Number.NaN };
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
