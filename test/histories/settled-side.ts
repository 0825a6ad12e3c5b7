import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import type { Dispatcher } from '../../src/deliver/dispatcher.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { AcceptedRoutes } from '../../src/deliver/routes/accepted.ts';
import { makeDispatcher } from '../deliver/running.ts';
import { LIMITS, ManualClock } from '../deliver/support.ts';
import { makeEvent } from '../support/events.ts';
import { inlineJournal } from '../support/inline-journal.ts';

export const PLACES = ['x', 'y'] as const;
export type Place = (typeof PLACES)[number];
/** Where events of each type go. */
export const TO: Readonly<Record<string, readonly Place[]>> = { t0: ['x'], t1: ['x', 'y'], t2: ['y'] };

const ROUTES = Object.entries(TO).map(([type, to]) => ({
  match: [`${type}.`],
  to: to.map((destination) => ({ sink: 'a', destination })),
}));

/**
 * The far side of one sink with two places, and plain lists of what has been there and what a person did. It is the oracle: a
 * delivery is named `id@place`, and nothing of it is asked of the product.
 */
export class FarSide {
  readonly folder: string;
  readonly clock = new ManualClock();
  readonly down = new Set<Place>();
  readonly refusing = new Set<Place>();
  readonly owed = new Set<string>();
  readonly got = new Set<string>();
  /** Refused by the far side, and not put back by a person since. */
  readonly refused = new Set<string>();
  readonly dropped = new Set<string>();
  /** Put back by a person: it may come once more. */
  readonly putBack = new Set<string>();
  /** Confirmed when a process was killed that may not have noted it yet. */
  readonly unsure = new Set<string>();
  /** Confirmed, or refused, since there was last time for writing it down. */
  readonly fresh = new Set<string>();
  readonly faults: string[] = [];
  /** By user and place, what is owed in the order in which it came. */
  readonly #lines = new Map<string, string[]>();

  constructor(folder: string) {
    this.folder = folder;
  }

  owe(id: string, place: Place): void {
    const line = lineOf(id, place);
    this.#lines.set(line, [...(this.#lines.get(line) ?? []), `${id}@${place}`]);
    this.owed.add(`${id}@${place}`);
  }

  take(id: string, place: Place): 'delivered' | 'refused' | 'down' {
    const name = `${id}@${place}`;
    const was = [
      ...(this.dropped.has(name) ? ['dropped'] : []),
      ...(this.refused.has(name) ? ['a dead letter'] : []),
      ...(this.got.has(name) && !this.putBack.has(name) && !this.unsure.has(name) ? ['confirmed'] : []),
    ];
    if (was.length > 0) this.faults.push(`${name} came again, and was ${was.join(', ')}`);
    const line = this.#lines.get(lineOf(id, place)) ?? [];
    for (const before of line.slice(0, line.indexOf(name)))
      if (!this.#hasBeen(before)) this.faults.push(`${name} came before ${before}`);
    if (this.down.has(place)) return 'down';
    this.putBack.delete(name);
    if (this.refusing.has(place) && Number(id.slice(1)) % 3 === 0) {
      this.refused.add(name);
      return 'refused';
    }
    this.got.add(name);
    this.fresh.add(name);
    return 'delivered';
  }

  #hasBeen(name: string): boolean {
    return [this.got, this.refused, this.dropped, this.putBack].some((all) => all.has(name));
  }
}

export const userOf = (id: string): string => `u${Number(id.slice(1)) % 4}`;
const lineOf = (id: string, place: Place): string => `${userOf(id)} ${place}`;

/** A run of the receiver as far as delivering goes, with a journal on disk. */
export class Run {
  readonly #far: FarSide;
  readonly #kill: () => void;
  readonly journal: SqliteJournal;
  readonly #dispatcher: Dispatcher;
  #accepted!: AcceptedRoutes;
  #isAlive = true;

  private constructor(far: FarSide) {
    this.#far = far;
    const { journal, kill } = inlineJournal(far.folder, far.clock);
    this.journal = journal;
    this.#kill = kill;
    this.#dispatcher = makeDispatcher({
      journal,
      clock: far.clock,
      retry: { initial: 10, max: 100, giveUpAfter: 0 },
      maxPending: 12,
      targetsOf: (event) => this.#accepted.targetsOf(event),
      routes: () => this.#accepted,
    });
  }

  static async start(far: FarSide): Promise<Run> {
    const run = new Run(far);
    run.#accepted = new AcceptedRoutes(await run.journal.acceptUnder(ROUTES));
    await run.#open();
    return run;
  }

  async #open(): Promise<void> {
    await this.#dispatcher.add('a', this.#sink());
    this.#dispatcher.begin();
  }

  #sink(): Sink {
    return {
      limits: { ...LIMITS, batchCount: 1, inFlight: 4, batchBy: 'destination' },
      open: () => Promise.resolve(),
      send: async (batch) => {
        await new Promise((resolve) => setImmediate(resolve));
        if (!this.#isAlive) return new Promise<never>(() => undefined);
        return batch.map(({ event, destination }) => {
          const answer = this.#far.take(event.id, destination as Place);
          if (answer === 'delivered') return DELIVERED;
          if (answer === 'down') return { status: 'retry', reason: 'down' };
          return { status: 'refused', code: 'bad', reason: 'not this' };
        });
      },
      close: () => Promise.resolve(),
    };
  }

  async append(id: string, type: string): Promise<void> {
    const event = makeEvent({ id, type: `${type}.x`, user: userOf(id) });
    for (const place of TO[type] ?? []) this.#far.owe(id, place);
    await this.journal.accept(event);
  }

  /** The sink by another config, with the same routes. */
  async reload(): Promise<void> {
    await this.#dispatcher.remove('a', new AbortController().signal);
    await this.#open();
  }

  async letters(): Promise<readonly { readonly key: number; readonly name: string }[]> {
    const found = await this.journal.listDeadLetters({ limit: 100_000 });
    return found.map(({ key, destination, event }) => ({ key, name: `${event.id}@${destination}` }));
  }

  async stop(): Promise<void> {
    await this.#dispatcher.stop(new AbortController().signal);
    this.#isAlive = false;
    await this.journal.close();
  }

  kill(): void {
    this.#isAlive = false;
    this.#kill();
  }
}
