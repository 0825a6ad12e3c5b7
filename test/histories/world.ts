import { MillraceError } from '../../src/core/errors.ts';
import type { Journal } from '../../src/core/journal.ts';
import { DELIVERED, type Delivery, type SendResult, type Sink } from '../../src/core/sink.ts';
import type { DeliveryPlan, PlanRunner } from '../../src/deliver/plan-runner.ts';
import { dropSink } from '../../src/deliver/waiting.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { Cell } from '../../src/lib/live.ts';
import { delivering, planned } from '../deliver/running.ts';
import { LIMITS, ManualClock } from '../deliver/support.ts';
import { makeEvent } from '../support/events.ts';
import { inlineJournal } from '../support/inline-journal.ts';

/** Far sides. B holds what it gets until `confirm`; the others confirm at once. */
export const FARS = ['A', 'B', 'C'] as const;
export const PLACES = ['x', 'y', 'z'] as const;
export type Far = (typeof FARS)[number];
/** Where events go: a far side, and a place of it. */
export type Place = readonly [far: Far, place: string];

/** A config, as far as delivering goes. */
export interface Config {
  readonly table: readonly { readonly type: string; readonly to: readonly Place[] }[];
  /** Far sides that have a sink although no route names them. */
  readonly extra: readonly Far[];
  /** When it changes, every sink is reopened. */
  readonly revision?: number;
}

/** Sees what happens to each delivery, named `id@far:place`, before the receiver does. */
export interface Witness {
  owed(name: string): void;
  came(name: string): void;
  answered(name: string, status: SendResult['status']): void;
  /** A person takes dead letters. */
  taken(how: 'drop' | 'retry', names: readonly string[]): void;
}

/** Defects to be reintroduced, so that a test sees the histories find them. */
export interface Defects {
  /** What waits goes by the routes of now. */
  readonly routesOfNow?: boolean;
  /** Sinks that a config leaves behind are ignored. */
  readonly forgetsSinks?: boolean;
}

interface Accepted {
  readonly id: string;
  readonly type: string;
  /** Configs that it may have been accepted under, by their numbers. */
  readonly under: readonly number[];
}

interface FarDeadLetter {
  readonly key: number;
  readonly sink: string;
  readonly name: string;
}

const never = new AbortController().signal;
/** Milliseconds. The journal looks every five seconds what is past it. */
const RETENTION = 1000;

export function isNamed({ table }: Config, far: Far): boolean {
  return table.some(({ to }) => to.some((place) => place[0] === far));
}

/**
 * A receiver as far as delivering goes, with a journal on disk, and what its far sides, its operator and its sender know: plain
 * lists, which are the oracle. Nothing of them is asked of the product.
 */
export class World {
  readonly clock = new ManualClock();
  /** In force. */
  config!: Config;
  /** The sinks' names of now. */
  readonly names = new Map<Far, string>(FARS.map((far) => [far, far.toLowerCase()]));
  readonly down = new Set<string>();
  readonly refuses = new Set<string>();
  readonly #folder: string;
  readonly #maxPending: number;
  readonly #defects: Defects;
  readonly #witness: Witness | undefined;
  readonly #got = new Set<string>();
  readonly #dropped = new Set<string>();
  readonly #accepted: Accepted[] = [];
  readonly #configs: Config[] = [];
  #confirming: PromiseWithResolvers<void>[] = [];
  #renames = 0;
  #count = 0;
  #life = { now: true };
  #journal!: SqliteJournal;
  #killJournal!: () => void;
  #delivery!: PlanRunner;
  #plan!: Cell<DeliveryPlan>;

  constructor(folder: string, maxPending: number, defects: Defects = {}, witness?: Witness) {
    this.#folder = folder;
    this.#maxPending = maxPending;
    this.#defects = defects;
    this.#witness = witness;
  }

  /** Where that is refused the operator drops the sinks that are waited for, or leaves them in the config. */
  async start(wanted: Config, drops = false): Promise<void> {
    this.#life = { now: true };
    this.#openJournal();
    const { routesOfNow, forgetsSinks } = this.#defects;
    const { delivery, plan } = delivering(this.#journal, this.clock, this.#planOf(wanted), {
      maxPending: this.#maxPending,
      sendTimeout: 1e6,
      ...(routesOfNow === true
        ? { targetsOf: (event) => delivery.routes.targetsOf({ ...event, seq: Number.MAX_SAFE_INTEGER }) }
        : {}),
      seen: forgetsSinks === true ? forgetful(this.#journal) : this.#journal,
    });
    this.#plan = plan;
    this.#delivery = delivery;
    try {
      await this.#done(delivery.start());
      this.#enter(wanted);
    } catch (error) {
      const waitedFor = this.#refusedFor(error);
      this.kill();
      if (drops) await this.#dropStopped(waitedFor);
      await this.start(drops ? wanted : { ...wanted, extra: [...wanted.extra, ...waitedFor] });
    }
  }

  /**
   * @param renamed a far side whose sink has another name from now on, and that name
   * @returns false when it is refused
   */
  async reload(config: Config, renamed: readonly [Far, string] | null = null): Promise<boolean> {
    const before = new Map(this.names);
    if (renamed !== null) this.names.set(...renamed);
    const next = this.#planOf(config, renamed === null ? {} : { [renamed[0]]: before.get(renamed[0]) });
    try {
      await this.#done(this.#delivery.prepare(next, never));
    } catch (error) {
      this.#refusedFor(error);
      for (const [far, name] of before) this.names.set(far, name);
      return false;
    }
    await this.#done(this.#plan.replace(next));
    // The receiver waits for it within its deadline, and then continues as well.
    void this.#delivery.part(never).catch(() => undefined);
    this.#enter(config);
    return true;
  }

  /** One that is refused because a new sink cannot be opened. */
  async failToReload(config: Config): Promise<void> {
    const places = async (): Promise<string[]> =>
      (await this.#done(this.#journal.cursors())).map(([sink]) => sink);
    const before = await places();
    const next = this.#planOf(config);
    const wrong = planned(() => WRONG, { fingerprint: 'wrong' });
    const sinks = new Map([...next.sinks, ['wrong', wrong] as const]);
    const prepared = await this.#done(this.#delivery.prepare({ ...next, sinks }, never)).catch(
      (error: unknown) => error,
    );
    if (!(prepared instanceof MillraceError)) throw new Error('it was not refused', { cause: prepared });
    // A place of a sink that is not open would hold back all events for ever.
    const added = (await places()).filter((name) => !before.includes(name));
    if (added.length > 0) throw new Error(`a failed reload left places for ${added.join(', ')}`);
  }

  freshName(): string {
    this.#renames += 1;
    return `s${this.#renames}`;
  }

  has(far: Far): boolean {
    return this.config.extra.includes(far) || isNamed(this.config, far);
  }

  async accept(type: string, count: number): Promise<void> {
    const ids = await this.#append(type, count);
    this.#note(ids, type, [this.#configs.length - 1]);
  }

  /** Some come between any two steps of the reload. */
  async acceptWhileReload(type: string, config: Config): Promise<void> {
    const before = this.#configs.length - 1;
    const progress = { isOver: false };
    const taking = this.reload(config).finally(() => (progress.isOver = true));
    const ids: string[] = [];
    while (!progress.isOver) ids.push(...(await this.#append(type, 1)));
    this.#note(ids, type, (await taking) ? [before, before + 1] : [before]);
  }

  /** What B holds is in its place, or lost. */
  confirm(isThere: boolean): void {
    for (const { resolve, reject } of this.#confirming.splice(0))
      if (isThere) resolve();
      else reject(new Error('lost'));
  }

  /** A person gives up on a sink and takes it out of the config; its events become dead letters. */
  async drop(far: Far): Promise<void> {
    const { table, extra } = this.config;
    if (!this.has(far)) return;
    await this.#done(this.#delivery.giveUp(this.names.get(far) ?? far));
    await this.reload({
      table: table.map(({ type, to }) => ({ type, to: to.filter((place) => place[0] !== far) })),
      extra: extra.filter((other) => other !== far),
    });
  }

  /** A person takes every `of`-th dead letter, and drops it or has it sent again where there is a sink for it. */
  async handleDeadLetters(how: 'drop' | 'retry', of: number): Promise<void> {
    const picked = (await this.deadLetters()).filter((_, at) => at % of === 0);
    const names = new Set(FARS.filter((far) => this.has(far)).map((far) => this.names.get(far)));
    const deadLetters = how === 'drop' ? picked : picked.filter(({ sink }) => names.has(sink));
    const keys = deadLetters.map(({ key }) => key);
    this.#witness?.taken(
      how,
      deadLetters.map(({ name }) => name),
    );
    if (how === 'retry') return void (await this.#done(this.#journal.retryDeadLetters({ keys })));
    for (const { name } of deadLetters) this.#dropped.add(name);
    await this.#done(this.#journal.dropDeadLetters({ keys }));
  }

  /** Turns of the event loop in which the receiver gets on, and time goes by. */
  async go(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) {
      for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
      this.clock.next();
    }
  }

  /** Until all that is known is written down. */
  async flush(): Promise<void> {
    await this.#done(this.#journal.flush());
  }

  /** Until the journal has cleared away what it may. */
  async retain(): Promise<void> {
    const end = this.clock.monotonic() + 10 * RETENTION;
    while (this.clock.monotonic() < end) await this.go(1);
  }

  kill(): void {
    this.#life.now = false;
    this.#confirming = [];
    this.#killJournal();
  }

  async stop(): Promise<void> {
    await this.#done(this.#delivery.stop(never));
    this.#life.now = false;
    this.#confirming = [];
    await this.#done(this.#journal.close());
  }

  /** Events that are not at a place of a far side that routes name, and were not dropped; and those where no route led. */
  faults(): string[] {
    const has = (id: string, [far, place]: Place): boolean => {
      const name = `${id}@${far}:${place}`;
      return this.#got.has(name) || this.#dropped.has(name);
    };
    const lacks = (id: string, type: string, since: number): readonly Place[] => {
      const configs = this.#configs.slice(since);
      return placesOf(configs[0], type).filter((place) => {
        const [far] = place;
        // A route may name another place of the same far side for what waits, and that has it then.
        const stays = configs.every((config) => {
          const now = placesOf(config, type).filter((other) => other[0] === far);
          return now.length === 0 || now.some((other) => other[1] === place[1]);
        });
        return !(stays ? has(id, place) : PLACES.some((other) => has(id, [far, other])));
      });
    };
    return this.#accepted.flatMap(({ id, type, under }) => {
      const lost = under.map((since) => lacks(id, type, since));
      const named = this.#configs.slice(under[0]).flatMap((config) => placesOf(config, type));
      const strays = FARS.filter(
        (far) => !named.some((place) => place[0] === far) && PLACES.some((place) => has(id, [far, place])),
      );
      const isLost = lost.every((places) => places.length > 0);
      return [
        ...(isLost ? [`${id} is not at ${lost.map((places) => places.join(' and ')).join(', or ')}`] : []),
        ...strays.map((far) => `${id} is at ${far}`),
      ];
    });
  }

  #openJournal(): void {
    const { journal, kill } = inlineJournal(this.#folder, this.clock, { retention: RETENTION });
    this.#journal = journal;
    this.#killJournal = kill;
  }

  #enter(config: Config): void {
    this.config = config;
    this.#configs.push(config);
  }

  /** The far sides whose sinks a refusal names; rethrows anything else. */
  #refusedFor(error: unknown): Far[] {
    if (!(error instanceof MillraceError) || error.code !== 'sink_waited_for') throw error;
    const named = new Set(
      Array.from(error.detail.matchAll(/^sinks\.(\w+): \d+ events/gm), ([, name]) => name),
    );
    return FARS.filter((far) => named.has(this.names.get(far)));
  }

  /** What `millrace sink drop` does while nothing runs. */
  async #dropStopped(fars: readonly Far[]): Promise<void> {
    this.#openJournal();
    for (const far of fars)
      await this.#done(dropSink(this.#journal, this.names.get(far) ?? far, () => false, this.clock.now()));
    await this.#done(this.#journal.close());
  }

  async #append(type: string, count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => `e${(this.#count += 1)}`);
    const events = ids.map((id) => makeEvent({ id, type: `${type}.made_up`, user: userOf(id) }));
    for (const id of ids)
      for (const [far, place] of placesOf(this.config, type)) this.#witness?.owed(`${id}@${far}:${place}`);
    await this.#done(Promise.all(events.map((event) => this.#journal.accept(event))));
    return ids;
  }

  #note(ids: readonly string[], type: string, under: readonly number[]): void {
    this.#accepted.push(...ids.map((id) => ({ id, type, under })));
  }

  /** The dead letters of the journal. */
  async deadLetters(): Promise<readonly FarDeadLetter[]> {
    const deadLetters = await this.#done(this.#journal.listDeadLetters({ limit: 1e6 }));
    return deadLetters.map(({ key, sink, destination, event }) => {
      const far = FARS.find((each) => this.names.get(each) === sink) ?? sink;
      return { key, sink, name: `${event.id}@${far}:${destination}` };
    });
  }

  /** @param successors what the sink of a far side was called before */
  #planOf(config: Config, successors: Readonly<Record<string, string | undefined>> = {}): DeliveryPlan {
    const { table, extra } = config;
    const fars = FARS.filter((far) => extra.includes(far) || isNamed(config, far));
    const sinks = fars.map((far) => {
      const name = this.names.get(far) ?? far;
      const routes = table.map(({ type, to }) => [type, to.filter((place) => place[0] === far)]);
      const own = {
        continues: successors[far] ?? null,
        fingerprint: JSON.stringify([name, routes, config.revision]),
      };
      return [name, planned(() => this.#sink(far), own)] as const;
    });
    const routes = table.map(({ type, to }) => ({
      match: [type === '*' ? type : `${type}.`],
      to: to.map(([far, destination]) => ({ sink: this.names.get(far) ?? far, destination })),
    }));
    return { sinks: new Map(sinks), config: { routes } };
  }

  /** What a dead process sends does not reach the far side. */
  #sink(far: Far): Sink {
    const life = this.#life;
    const held: PromiseWithResolvers<void>[] = [];
    return {
      // In a batch of two, the order would be unknown.
      limits: { ...LIMITS, batchCount: this.#witness ? 1 : 2, inFlight: 3, batchBy: 'destination' },
      open: () => Promise.resolve(),
      send: async (batch) => {
        await new Promise((resolve) => setImmediate(resolve));
        if (!life.now) return new Promise<never>(() => undefined);
        const confirming = Promise.withResolvers<void>();
        confirming.promise.catch(() => undefined);
        held.push(confirming);
        this.#confirming.push(confirming);
        const answerTo = ({ event, destination }: Delivery): SendResult => {
          const at = `${far}:${destination}`;
          if (this.down.has(far)) return { status: 'retry', reason: 'down', sink: true };
          if (this.down.has(at)) return { status: 'retry', reason: 'down' };
          if (this.refuses.has(at) && Number(event.id.slice(1)) % 2 === 0)
            return { status: 'refused', code: 'made_up', reason: 'no' };
          const note = (): void => void (life.now && this.#got.add(`${event.id}@${at}`));
          if (far !== 'B') {
            note();
            return DELIVERED;
          }
          void confirming.promise.then(note, () => undefined);
          return { status: 'held', until: confirming.promise };
        };
        return batch.map((delivery) => {
          const name = `${delivery.event.id}@${far}:${delivery.destination}`;
          this.#witness?.came(name);
          const answer = answerTo(delivery);
          this.#witness?.answered(name, answer.status);
          return answer;
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

/** Each has a fifth of the events. */
export const userOf = (id: string): string => `u${Number(id.slice(1)) % 5}`;

function placesOf(config: Config | undefined, type: string): readonly Place[] {
  return config?.table.find((rule) => rule.type === type || rule.type === '*')?.to ?? [];
}

const WRONG: Sink = {
  limits: LIMITS,
  open: () => Promise.reject(new MillraceError('config_invalid', 'it cannot be opened')),
  send: () => Promise.resolve([]),
  close: () => Promise.resolve(),
};

/** The journal, without what waits in it. */
function forgetful(journal: SqliteJournal): Journal {
  return new Proxy(journal, {
    get(target, key) {
      if (key === 'heads') return () => Promise.resolve([]);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
