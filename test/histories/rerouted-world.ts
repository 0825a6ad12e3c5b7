import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import type { Delivery, DeliveryPlan } from '../../src/deliver/delivery.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { Cell } from '../../src/lib/live.ts';
import { delivering, planned } from '../deliver/running.ts';
import { LIMITS, ManualClock } from '../deliver/support.ts';
import { makeEvent } from '../support/events.ts';
import { inlineJournal } from '../support/inline-journal.ts';

export const FARS = ['A', 'B'] as const;
export const PLACES = ['x', 'y', 'z'] as const;
export type Far = (typeof FARS)[number];
/** Where events go: a far side, and a place of it. */
export type Place = readonly [far: Far, place: string];
export type Table = readonly { readonly type: string; readonly to: readonly Place[] }[];

const nobody = new AbortController().signal;

/** What two far sides, the person who operates the receiver, and the sender know: plain lists. */
export class RerouteWorld {
  readonly clock = new ManualClock();
  readonly #folder: string;
  readonly #maxPending: number;
  /** The sinks' names of now. */
  readonly names = new Map<Far, string>([
    ['A', 'a'],
    ['B', 'b'],
  ]);
  readonly down = new Set<string>();
  readonly refuses = new Set<string>();
  readonly #got = new Set<string>();
  readonly #dropped = new Set<string>();
  readonly #accepted: { readonly id: string; readonly type: string; readonly since: number }[] = [];
  readonly #tables: Table[] = [];
  #confirming: PromiseWithResolvers<void>[] = [];
  #renames = 0;
  #life = { now: true };
  #journal!: SqliteJournal;
  #killJournal!: () => void;
  #delivery!: Delivery;
  #plan!: Cell<DeliveryPlan>;

  constructor(folder: string, maxPending: number) {
    this.#folder = folder;
    this.#maxPending = maxPending;
  }

  async start(table: Table): Promise<void> {
    this.#life = { now: true };
    const { journal, kill } = inlineJournal(this.#folder, this.clock, { retention: 1000 });
    const { delivery, plan } = delivering(journal, this.clock, this.#planOf(table), {
      maxPending: this.#maxPending,
    });
    this.#journal = journal;
    this.#killJournal = kill;
    this.#plan = plan;
    this.#delivery = delivery;
    await this.#done(delivery.start());
    this.#tables.push(table);
  }

  /** @param renamed a far side whose sink has another name from now on, and that name */
  async reload(table: Table, renamed: readonly [Far, string] | null = null): Promise<void> {
    const continues = renamed === null ? undefined : this.names.get(renamed[0]);
    if (renamed !== null) this.names.set(...renamed);
    const next = this.#planOf(table, renamed?.[0], continues);
    await this.#done(this.#delivery.prepare(next, nobody));
    await this.#done(this.#plan.replace(next));
    void this.#delivery.part(nobody).catch(() => undefined);
    this.#tables.push(table);
  }

  freshName(): string {
    this.#renames += 1;
    return `s${this.#renames}`;
  }

  async accept(type: string): Promise<void> {
    const id = `e${this.#accepted.length + 1}`;
    await this.#done(
      this.#journal.accept(makeEvent({ id, type: `${type}.made_up`, user: `u${this.#accepted.length % 5}` })),
    );
    this.#accepted.push({ id, type, since: this.#tables.length - 1 });
  }

  /** What B holds is in its place, or lost. */
  confirm(isThere: boolean): void {
    for (const { resolve, reject } of this.#confirming.splice(0))
      if (isThere) resolve();
      else reject(new Error('lost'));
  }

  /** A person takes every second dead letter, and drops it or has it sent again. */
  async takeLetters(how: 'drop' | 'retry'): Promise<void> {
    const letters = (await this.#letters()).filter((_, at) => at % 2 === 0);
    const keys = letters.map(({ key }) => key);
    if (how === 'retry') return void (await this.#done(this.#journal.retryDeadLetters({ keys })));
    for (const { name } of letters) this.#dropped.add(name);
    await this.#done(this.#journal.dropDeadLetters({ keys }));
  }

  /** Turns of the event loop in which the receiver gets on, and time goes by. */
  async go(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) {
      for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
      this.clock.next();
    }
  }

  kill(): void {
    this.#life.now = false;
    this.#confirming = [];
    this.#killJournal();
  }

  async stop(): Promise<void> {
    await this.#done(this.#delivery.stop(nobody));
    this.#life.now = false;
    this.#confirming = [];
    await this.#done(this.#journal.close());
  }

  /** Events that are nowhere: neither at a place of a far side that routes name, nor a dead letter, nor dropped. */
  async lost(): Promise<string[]> {
    const letters = new Set((await this.#letters()).map(({ name }) => name));
    const has = (id: string, [far, place]: Place): boolean => {
      const name = `${id}@${far}:${place}`;
      return this.#got.has(name) || letters.has(name) || this.#dropped.has(name);
    };
    return this.#accepted.flatMap(({ id, type, since }) => {
      const tables = this.#tables.slice(since);
      const due = placesOf(tables[0] ?? [], type);
      return due.flatMap((place) => {
        const [far] = place;
        // A route may name another place of the same far side for what waits, and that has it then.
        const stays = tables.every((table) => {
          const now = placesOf(table, type).filter((other) => other[0] === far);
          return now.length === 0 || now.some((other) => other[1] === place[1]);
        });
        const isThere = stays ? has(id, place) : PLACES.some((other) => has(id, [far, other]));
        return isThere ? [] : [`${id}@${place.join(':')}`];
      });
    });
  }

  async #letters(): Promise<{ readonly key: number; readonly name: string }[]> {
    const letters = await this.#done(this.#journal.listDeadLetters({ limit: 1e6 }));
    return letters.map(({ key, sink, destination, event }) => {
      const far = FARS.find((each) => this.names.get(each) === sink) ?? sink;
      return { key, name: `${event.id}@${far}:${destination}` };
    });
  }

  #planOf(table: Table, renamed?: Far, continues: string | null = null): DeliveryPlan {
    const sinks = [...this.names].map(([far, name]) => {
      const routes = table.map(({ type, to }) => [type, to.filter((place) => place[0] === far)]);
      const own = {
        continues: far === renamed ? continues : null,
        fingerprint: JSON.stringify([name, routes]),
      };
      return [name, planned(() => this.#sink(far), own)] as const;
    });
    const routes = table.map(({ type, to }) => ({
      match: [type === '*' ? type : `${type}.`],
      to: to.map(([far, destination]) => ({ sink: this.names.get(far) ?? far, destination })),
    }));
    return { sinks: new Map(sinks), config: { routes } };
  }

  /** A confirms at once; B holds what it has until it is told. */
  #sink(far: Far): Sink {
    const life = this.#life;
    const held: PromiseWithResolvers<void>[] = [];
    return {
      limits: { ...LIMITS, batchCount: 2, inFlight: 3, batchBy: 'destination' },
      open: () => Promise.resolve(),
      send: async (batch) => {
        await new Promise((resolve) => setImmediate(resolve));
        if (!life.now) return new Promise<never>(() => undefined);
        const confirming = Promise.withResolvers<void>();
        confirming.promise.catch(() => undefined);
        held.push(confirming);
        this.#confirming.push(confirming);
        return batch.map(({ event, destination }) => {
          const at = `${far}:${destination}`;
          if (this.down.has(at)) return { status: 'retry', reason: 'down' } as const;
          if (this.refuses.has(at) && Number(event.id.slice(1)) % 2 === 0)
            return { status: 'refused', code: 'made_up', reason: 'no' } as const;
          const note = (): void => void (life.now && this.#got.add(`${event.id}@${at}`));
          if (far === 'A') {
            note();
            return DELIVERED;
          }
          void confirming.promise.then(note, () => undefined);
          return { status: 'held', until: confirming.promise } as const;
        });
      },
      close: async () => {
        for (const { resolve } of held) resolve();
        await new Promise((resolve) => setImmediate(resolve));
      },
    };
  }

  async #done<T>(work: Promise<T>): Promise<T> {
    const state = { isOver: false };
    const over = work.finally(() => (state.isOver = true));
    over.catch(() => undefined);
    for (let turn = 0; turn < 600 && !state.isOver; turn += 1) await this.go(1);
    if (!state.isOver) throw new Error('it never comes to an end');
    return over;
  }
}

function placesOf(table: Table, type: string): readonly Place[] {
  return table.find((rule) => rule.type === type || rule.type === '*')?.to ?? [];
}
