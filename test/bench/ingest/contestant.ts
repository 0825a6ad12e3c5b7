import { cpuSecondsOf, mainThreadSecondsOf } from '../processes.ts';
import type { Load } from './children.ts';
import type { LoadResult } from './load-child.ts';

/** What can be put under load. */
export interface Server {
  readonly pid: number;
  readonly port: number;
  /** Status of its answer to an event that it has accepted. */
  readonly accepted: string;
  /** Resolves when all that it has accepted is where it belongs. */
  untilDelivered(): Promise<void>;
  /** Ends it in order. */
  end(): Promise<void>;
  /** How many records it has kept when it has ended, and how many ids they have; null when it keeps nothing. */
  kept(): Promise<Kept | null>;
}

export interface Kept {
  readonly records: number;
  readonly ids: number;
}

/** One flood. */
interface Flood {
  readonly events: number;
  /** Until the last answer, milliseconds. */
  readonly answered: number;
  /** Until the last event is delivered, milliseconds. */
  readonly delivered: number;
}

/** What the floods of a round have shown. */
export interface Lap {
  /** Answers a second. */
  readonly rate: number;
  /** Events a second until the last one is delivered. */
  readonly delivered: number;
  /** CPU of all threads for an event, until it is delivered, microseconds. */
  readonly cpu: number;
  /** Of that the thread that a process begins with: a receiver receives on it. */
  readonly thread: number;
}

/** A server that takes part, and what it has answered. */
export class Contestant {
  readonly #start: () => Promise<Server>;
  readonly #load: Load;
  readonly #connections: number;
  server: Server;
  /** Events that it has accepted so far. */
  accepted = 0;

  private constructor(start: () => Promise<Server>, server: Server, load: Load, connections: number) {
    this.#start = start;
    this.server = server;
    this.#load = load;
    this.#connections = connections;
  }

  static async start(start: () => Promise<Server>, load: Load, connections: number): Promise<Contestant> {
    return new Contestant(start, await start(), load, connections);
  }

  /** Ends its process in order, and starts another that continues. */
  async renew(): Promise<void> {
    await this.server.end();
    this.server = await this.#start();
  }

  /** Sends what was made last, as fast as it is answered. @param count of it */
  async flood(count: number): Promise<Flood> {
    const started = performance.now();
    const { elapsedMs } = await this.#run({ op: 'flood' });
    return { events: count, answered: elapsedMs, delivered: performance.now() - started };
  }

  /** One flood as a round. */
  async lap(count: number): Promise<Lap> {
    const side = new Side(this);
    side.floods.push(await this.flood(count));
    return side.lap();
  }

  /** Sends what was made last, `rate` a second at random times. */
  pace(rate: number): Promise<LoadResult> {
    return this.#run({ op: 'pace', rate });
  }

  async #run(order: { op: 'flood' } | { op: 'pace'; rate: number }): Promise<LoadResult> {
    const { port, accepted } = this.server;
    const to = { port, connections: this.#connections };
    const result = await this.#load.run({ ...order, ...to }, accepted);
    this.accepted += result.statuses[accepted] ?? 0;
    await this.server.untilDelivered();
    return result;
  }
}

/** A contestant's floods as one. What it does between them is in its CPU time, and in no rate. */
class Side {
  readonly contestant: Contestant;
  readonly floods: Flood[] = [];
  readonly #before: { readonly all: number; readonly thread: number };

  constructor(contestant: Contestant) {
    this.contestant = contestant;
    this.#before = this.#cpu();
  }

  lap(): Lap {
    const sum = (of: (flood: Flood) => number): number =>
      this.floods.reduce((total, one) => total + of(one), 0);
    const events = sum((flood) => flood.events);
    const after = this.#cpu();
    return {
      rate: (events * 1000) / sum(({ answered }) => answered),
      delivered: (events * 1000) / sum(({ delivered }) => delivered),
      cpu: ((after.all - this.#before.all) * 1e6) / events,
      thread: ((after.thread - this.#before.thread) * 1e6) / events,
    };
  }

  /** Until the last answer of the last two floods, milliseconds. */
  lastTwo(): number {
    return this.floods.slice(-2).reduce((sum, { answered }) => sum + answered, 0);
  }

  /** Seconds so far. */
  #cpu(): { readonly all: number; readonly thread: number } {
    const { pid } = this.contestant.server;
    return { all: cpuSecondsOf(pid), thread: mainThreadSecondsOf(pid) };
  }
}

/** A round of two servers that took turns. */
export interface Turns {
  /** All turns of the one, and of the other. */
  readonly lap: Lap;
  readonly beside: Lap;
  /** The one's rate as a multiple of the other's, of two turns each, A B B A. */
  readonly rates: readonly number[];
}

/** Events of each until its code is compiled. */
const WARM_UP = 20_000;

/**
 * Has two servers take turns, A B B A A B B A: both are sent the same events, some at a time. What else keeps the machine busy
 * changes from second to second, and meets both alike when turns are shorter than that. Both begin as new processes: two that
 * run the same program differ by some percent for as long as they live, and only more of them tell less than that. The first turns of
 * each do not count.
 * @param events of each, in so many of a turn
 * @param make signs what is sent next
 */
export async function twoInTurns(
  [one, other]: readonly [Contestant, Contestant],
  events: number,
  perTurn: number,
  make: (count: number) => Promise<unknown>,
): Promise<Turns> {
  const twoTurns = async (a: Side, b: Side): Promise<number> => {
    for (const order of [
      [a, b],
      [b, a],
    ]) {
      await make(perTurn);
      for (const side of order) side.floods.push(await side.contestant.flood(perTurn));
    }
    return b.lastTwo() / a.lastTwo();
  };
  for (const contestant of [one, other]) await contestant.renew();
  for (let sent = 0; sent < WARM_UP; sent += 2 * perTurn) await twoTurns(new Side(one), new Side(other));
  const [a, b] = [new Side(one), new Side(other)];
  const rates: number[] = [];
  for (let sent = 0; sent < events; sent += 2 * perTurn) rates.push(await twoTurns(a, b));
  return { lap: a.lap(), beside: b.lap(), rates };
}
