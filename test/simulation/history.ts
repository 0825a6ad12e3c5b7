import { mkdirSync, rmSync } from 'node:fs';
import { startApp, type App } from '../../src/app/app.ts';
import type { ResolvedConfig } from '../../src/config/config.ts';
import { resolveText } from '../../src/config/load.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { SinkModule } from '../../src/core/sink.ts';
import { Requests } from '../../src/privacy/erase/requests.ts';
import { loadSinkModule } from '../../src/sinks/registry.ts';
import { loadSourceModule } from '../../src/sources/registry.ts';
import { BROKER } from './broker.ts';
import { type Act, type Character, characterOf } from './character.ts';
import { post } from './client.ts';
import { ALL_SINKS, configOf, CONFIGS, sinksOf } from './configs.ts';
import { simulateGlobals, START } from './globals.ts';
import { judge, type Sent, SINKS } from './judge.ts';
import { LAKE } from './lake.ts';
import { Life } from './scheduler.ts';
import { enter, World } from './world.ts';

export interface Outcome {
  readonly seed: number;
  /** What is not as promised; empty when all is well. */
  readonly faults: readonly string[];
  /** Equal for two runs that were the same. */
  readonly trace: number;
  readonly events: number;
  /** What was done to the receiver, and how often. */
  readonly tried: Readonly<Record<string, number>>;
  readonly steps: readonly string[];
}

const USERS = 4;
const TYPES = ['daily.data.meal.created', 'labtest.order.created', 'provider.connection.created'] as const;
const TEAM = '6b0e9a52-0000-4000-8000-000000000001';

const FAR_AWAY: Readonly<Record<string, SinkModule>> = { './broker': BROKER, './lake': LAKE };
/** With what makes sinks and sources: nothing is loaded while a history runs. */
const MODULES = {
  sink: async (type: string, folder: string) => {
    const far = FAR_AWAY[type];
    if (far !== undefined) return { ...far, load: () => Promise.resolve(far) };
    const module = await loadSinkModule(type, folder);
    const made = await module.load();
    return { ...module, load: () => Promise.resolve(made) };
  },
  source: async (type: string) => {
    const module = await loadSourceModule(type);
    const made = await module.load();
    return { ...module, load: () => Promise.resolve(made) };
  },
};

const ENDED = Object.assign(new Error('it has ended'), { code: 'ended' });

/** Configs by their text: one is the same each time it is read. */
const resolved = new Map<string, ResolvedConfig>();

/**
 * One history: a receiver among senders, an operator, and what can go wrong, all of it decided by the seed.
 * @param length steps of the operator; left out: as the seed has it
 */
export async function runHistory(seed: number, length?: number): Promise<Outcome> {
  const world = new World(seed);
  const restore = simulateGlobals(world.scheduler);
  // As long in every process: what is written holds it.
  const folder = `/dev/shm/millrace-simulation-${String(process.pid).padStart(7, '0')}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(`${folder}/journal`, { recursive: true });
  world.disk.prepare(`${folder}/journal`);
  // Listed in erasure.folders by every config, which waits for a folder that is not there.
  for (const sink of SINKS) world.disk.prepare(`${folder}/${sink}`);
  enter(world);
  const character = characterOf(seed);
  const history = new History(world, folder, character);
  try {
    const faults = await history.run(length ?? character.length);
    const { sent, steps } = history;
    const { trace } = world.scheduler;
    return { seed, faults, trace, events: sent.size, tried: world.tried, steps };
  } finally {
    history.kill();
    enter(null);
    restore();
    rmSync(folder, { recursive: true, force: true });
  }
}

class History {
  readonly #world: World;
  readonly #folder: string;
  readonly #character: Character;
  #life: Life | null = null;
  #app: App | null = null;
  #starting: Promise<void> | null = null;
  #isOver = false;
  /** Nothing new is sent. */
  #isQuiet = false;
  #variant = 0;
  /** That of the operator, which the power ends too. */
  #command: Life | null = null;
  /** When a sink was last given up: what it had not had can be retried, and comes late. */
  #givenUp = -1;
  /** Whether it ever had another config. */
  #hasChanged = false;
  /** Variant of a reload that is in progress. */
  #pending: number | null = null;
  /** Configs that may be in force. */
  #possible = new Set([0]);
  readonly sent = new Map<string, Sent>();
  readonly erased = new Map<number, number>();
  readonly steps: string[] = [];

  constructor(world: World, folder: string, character: Character) {
    this.#world = world;
    this.#folder = folder;
    this.#character = character;
  }

  async run(length: number): Promise<readonly string[]> {
    const { scheduler } = this.#world;
    let outcome: readonly string[] | Error | null = null;
    this.#story(length).then(
      (faults) => (outcome = faults),
      (error: unknown) => (outcome = error as Error),
    );
    await scheduler
      .until('the history', () => outcome !== null, 1e11, 1_000_000)
      .catch((error: unknown) => (outcome = error as Error));
    if ((outcome as unknown) instanceof Error) {
      const { message, stack } = outcome as unknown as Error;
      return [`${message}\n${stack}`];
    }
    return outcome ?? [];
  }

  /** As a kill -9. */
  kill(): void {
    if (this.#life !== null) {
      this.#world.scheduler.end(this.#life);
      this.#world.disk.renumber();
    }
    this.#life = null;
    this.#app = null;
  }

  async #story(length: number): Promise<readonly string[]> {
    const { scheduler } = this.#world;
    const { random } = scheduler;
    await this.#start();
    const senders = [this.#send(0), this.#send(1), this.#send(2)];
    for (let step = 0; step < length; step += 1) {
      await this.#sleep(random.below(3000));
      await this.#act(random.pick(this.#character.acts));
    }
    // Every trouble is over.
    this.#say('calm');
    this.#world.trouble = 0;
    this.#world.broker.trouble = 0;
    scheduler.slow = false;
    this.#isOver = true;
    await Promise.all(senders);
    await this.#start();
    await this.#drain();
    if (this.#hasChanged) {
      // A sink that has left can have unfinished files; they are finished when it is there again.
      await this.#stop();
      this.#variant = ALL_SINKS;
      await this.#start();
      await this.#drain();
    }
    await this.#retry();
    await this.#drain();
    await this.#ask((app) => app.stop(new AbortController().signal));
    this.#say('end');
    return judge({
      disk: this.#world.disk,
      broker: this.#world.broker,
      lake: this.#world.lake,
      folder: this.#folder,
      sent: [...this.sent.values()],
      isSealed: this.#character.isSealed,
      sinksOf,
      erased: this.erased,
      givenUp: this.#givenUp,
    });
  }

  async #act(act: Act): Promise<void> {
    const world = this.#world;
    const { random } = world.scheduler;
    switch (act) {
      case 'kill':
        this.#do('kill -9');
        await this.#end();
        await this.#sleep(random.below(2000));
        return this.#start();
      case 'power cut':
        this.#do('power cut');
        await this.#end();
        this.#cut();
        return this.#start();
      case 'stop':
        this.#do('stop');
        await this.#stop();
        return this.#start();
      case 'reload':
        return this.#reload(random.below(CONFIGS));
      case 'time':
        return this.#wait(random.pick([120_000, 4_000_000]));
      case 'disk':
        return this.#trouble();
      case 'slow':
        world.scheduler.slow = !world.scheduler.slow;
        return this.#do('slow or no more', world.scheduler.slow ? 'slow' : 'not slow');
      case 'erase':
        return this.#erase(random.below(USERS));
      case 'give up':
        return this.#giveUp(random.pick(['second', 'third']));
      case 'retry':
        this.#do('retry of dead letters');
        // It continues beside the next step.
        void this.#retry().catch(() => undefined);
        return;
      case 'broker':
        world.broker.trouble = world.broker.trouble > 0 ? 0 : random.pick([0.1, 0.5, 1]);
        this.#do('broker in trouble or out of it', `broker in trouble ${world.broker.trouble}`);
        return this.#sleep(random.below(5000));
      case 'start with another config':
        return this.#startWith(random.below(CONFIGS));
      default:
        act satisfies never;
    }
  }

  /** Nothing new comes. Mostly the machine is suspended: what only looks around every second would take all the processor. */
  async #wait(ms: number): Promise<void> {
    const { scheduler } = this.#world;
    this.#do('time', `${ms} ms pass`);
    this.#isQuiet = true;
    if (scheduler.random.chance(0.05)) await this.#sleep(ms / 10);
    else {
      await this.#sleep(10_000);
      scheduler.suspend(ms);
      await this.#sleep(20_000);
    }
    this.#isQuiet = false;
  }

  /** Every folder, or only one, as where each is on a disk of its own. */
  async #trouble(): Promise<void> {
    const world = this.#world;
    const { random } = world.scheduler;
    world.trouble = world.trouble > 0 ? 0 : random.pick([0.02, 0.2, 1]);
    const place = random.pick(['', 'journal', 'erasure', 'archive', 'second', 'second', 'third', 'third']);
    world.troubled = (path) => path.startsWith(`${this.#folder}/${place}`);
    this.#do('disk in trouble or out of it', `trouble ${world.trouble} ${place}`);
    await this.#sleep(random.below(5000));
  }

  /** Now and then what has begun is killed in the middle, or the power goes. */
  #mayKill(): void {
    const { scheduler } = this.#world;
    const { random } = scheduler;
    if (this.#isOver || !random.chance(this.#character.killed)) return;
    const life = this.#life;
    const isCut = random.chance(0.3);
    scheduler.afterTurns(random.below(100), () => {
      if (this.#life !== life || life === null || this.#isOver) return;
      this.#do(isCut ? 'power cut in the middle' : 'kill in the middle');
      this.kill();
      if (isCut) this.#cut();
      // The file has been written: who starts next has it, or somebody has put the old one back.
      if (this.#pending !== null && random.chance(0.5)) this.#variant = this.#pending;
      this.#pending = null;
      void this.#start().catch((error: unknown) => this.#say(String(error)));
    });
  }

  #cut(): void {
    const { disk, scheduler } = this.#world;
    if (this.#command !== null) scheduler.end(this.#command);
    this.#command = null;
    disk.cut(scheduler.random);
  }

  /** The config is changed between two starts. */
  async #startWith(variant: number): Promise<void> {
    this.#do('start with another config', `start with ${variant}`);
    if (this.#world.scheduler.random.chance(0.5)) await this.#end();
    else await this.#stop();
    // One that has failed while it stopped has been started again.
    if (this.#life === null) {
      this.#variant = variant;
      this.#possible = new Set([variant]);
    }
    await this.#start();
  }

  /** What waits for a sink becomes dead letters once a reload has taken it out. */
  async #giveUp(sink: string): Promise<void> {
    this.#do('sink given up', `give up ${sink}`);
    // Refused for one that is not there.
    void this.#ask((app) => app.operations.dropSink(sink)).catch(() => undefined);
    await this.#sleep(this.#world.scheduler.random.below(2000));
    await this.#reload(0);
    this.#givenUp = this.#world.scheduler.now;
  }

  /** What the receiver does for the operator ends with it. @throws Error when it ends before it has answered */
  async #ask<T>(work: (app: App) => Promise<T>): Promise<T | undefined> {
    const [app, life] = [this.#app, this.#life];
    if (app === null || life === null) return undefined;
    const ended = life.ended.then(() => Promise.reject(ENDED));
    ended.catch(() => undefined);
    return Promise.race([this.#world.scheduler.within(life, () => work(app)), ended]);
  }

  /** Dead letters of sinks that are in the config. */
  async #retry(): Promise<void> {
    await this.#ask((app) => app.operations.retryDeadLetters({ limit: 100_000 }));
  }

  async #end(): Promise<void> {
    // A kill between two tries to start is none.
    if (this.#app === null) await this.#starting;
    const { scheduler } = this.#world;
    // At any moment of the step.
    if (!this.#isOver && scheduler.random.chance(0.7))
      await new Promise<void>((resolve) => scheduler.afterTurns(scheduler.random.below(80), resolve));
    this.kill();
  }

  async #stop(): Promise<void> {
    await this.#starting;
    const app = this.#app;
    const life = this.#life;
    if (app === null) return;
    this.#mayKill();
    const stopped = this.#ask(() => app.stop(AbortSignal.timeout(30_000))).catch(() => undefined);
    // What does not stop is killed, as a supervisor would.
    await Promise.race([stopped, this.#sleep(60_000)]);
    // If it has failed by then, the next life has started.
    if (this.#life === life) this.kill();
  }

  /** Until it runs: a disk in trouble, or a config that events forbid, can be in the way. */
  #start(): Promise<void> {
    this.#starting ??= this.#startOnce().finally(() => (this.#starting = null));
    return this.#starting;
  }

  async #startOnce(): Promise<void> {
    for (let tries = 0; this.#app === null; tries += 1) {
      const life = new Life();
      this.#life = life;
      if (tries < 3) this.#mayKill();
      const begun = this.#begin(life).catch((error: unknown) => error as Error);
      // One that fails while it starts is gone, and answers nothing.
      const started = await Promise.race([begun, life.ended.then(() => ENDED)]);
      if (!(started instanceof Error)) {
        this.#app = started;
        return;
      }
      this.kill();
      if (!(started instanceof MillraceError) && !('code' in started)) throw started;
      // Without the folder, which is another one in each process.
      this.#say(`does not start: ${started.message.replaceAll(this.#folder, '')}`);
      // A person restores the sink that events wait for.
      if (started instanceof MillraceError && started.code === 'sink_waited_for') {
        this.#variant = ALL_SINKS;
        this.#possible = new Set([ALL_SINKS]);
      }
      if (tries > 6) this.#world.trouble = 0;
      if (tries > 20) throw started;
      await this.#sleep(1000);
    }
  }

  async #begin(life: Life): Promise<App> {
    const { scheduler } = this.#world;
    const config = await scheduler.within(null, () => this.#config(this.#variant));
    return scheduler.within(life, () =>
      startApp(config, {
        log: this.#log() as never,
        onFailure: (error) => {
          if (!life.isAlive) return;
          this.#do('failure of the journal', `fails: ${error.message.replaceAll(this.#folder, '')}`);
          // As main does: the process ends, and is started again.
          scheduler.within(null, () => scheduler.later(() => this.#restart(life)));
        },
      }),
    );
  }

  #restart(life: Life): void {
    if (this.#life !== life) return;
    this.kill();
    void this.#start().catch((error: unknown) => this.#say(String(error)));
  }

  /** A process that is killed during the reload starts with the earlier config, or with the new one if it has accepted it. */
  async #reload(variant: number): Promise<void> {
    const app = this.#app;
    const life = this.#life;
    if (app === null || life === null) return;
    this.#do('reload', `reload ${variant}`);
    const config = await this.#config(variant);
    this.#possible.add(variant);
    this.#pending = variant;
    let outcome: 'in progress' | 'taken' | 'refused' = 'in progress';
    this.#world.scheduler
      .within(life, () => app.reload(config))
      .then(
        () => {
          outcome = 'taken';
          this.#pending = null;
          // One that fails from now on starts again with this config.
          if (this.#life === life) this.#variant = variant;
        },
        (error: unknown) => {
          outcome = 'refused';
          this.#say(`refused: ${(error as Error).message}`);
        },
      );
    this.#mayKill();
    while (isInProgress(outcome) && this.#life === life) await this.#sleep(500);
    this.#pending = null;
    this.#possible = new Set([this.#variant]);
  }

  /** Asked for as the command does, beside the running receiver; it is due at once. */
  async #erase(user: number): Promise<void> {
    if (this.erased.has(user)) return;
    const { scheduler } = this.#world;
    this.#do('erasure', `erase user ${user}`);
    this.erased.set(user, scheduler.now);
    const requests = new Requests(`${this.#folder}/erasure`);
    const subject = { by: 'user', id: userOf(user), team: null } as const;
    for (let tries = 0; ; tries += 1) {
      const command = new Life();
      this.#command = command;
      const asking = scheduler.within(command, () => requests.add(subject, START + scheduler.now, 0));
      const asked = await Promise.race([asking.catch(() => null), command.ended.then(() => null)]);
      if (asked !== null) return;
      if (tries > 5) this.#world.trouble = 0;
      await this.#sleep(1000);
    }
  }

  /** A sender: events one after the other, each again until it is acknowledged; now and then one that was. */
  async #send(sender: number): Promise<void> {
    const { random } = this.#world.scheduler;
    for (let n = 0; !this.#isOver; n += 1) {
      while (this.#isQuiet) await this.#sleep(50_000);
      const id = `msg_${sender}_${n}`;
      const user = random.below(USERS);
      const type = random.pick(TYPES);
      const data = 'x'.repeat(random.below(1500));
      const body = JSON.stringify({
        event_type: type,
        team_id: TEAM,
        user_id: userOf(user),
        client_user_id: `made-up-${user}`,
        data: { id, n, data },
      });
      const event: Sent = { id, user, type, body, acknowledged: null, sender, order: n, configs: new Set() };
      this.sent.set(id, event);
      for (let tries = 0; !this.#isOver || tries < 1; tries += 1) {
        for (const variant of this.#possible) event.configs.add(variant);
        const breaks = random.chance(0.03);
        if (breaks) this.#world.note('lost answer');
        const status = await post(this.#world, event, breaks);
        for (const variant of this.#possible) event.configs.add(variant);
        if (status >= 200 && status < 300) {
          event.acknowledged = this.#world.scheduler.now;
          break;
        }
        await this.#sleep(100 + random.below(2000));
      }
      if (random.chance(0.1)) {
        const again = [...this.sent.values()][random.below(this.sent.size)];
        if (again !== undefined && again.acknowledged !== null) await post(this.#world, again, false);
      }
      await this.#sleep(random.below(this.#character.pause));
    }
  }

  /** Until nothing waits in the journal, and what is due is erased. */
  async #drain(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      const status = await this.#ask((app) => app.operations.status()).catch(() => null);
      const cursors = status?.journal?.cursors ?? null;
      const waits = cursors === null || cursors.some(({ backlog }) => backlog > 0);
      const asked = new Requests(`${this.#folder}/erasure`);
      if (!waits && asked.list().length === 0) return;
      if (tries > 1500) throw new Error(`events or erasures wait for ever: ${JSON.stringify(cursors)}`);
      await this.#sleep(1000);
    }
  }

  async #config(variant: number): Promise<ResolvedConfig> {
    this.#hasChanged ||= variant !== 0;
    const text = configOf(this.#folder, variant, this.#character.isSealed);
    const known =
      resolved.get(text) ?? (await resolveText(text, { file: 'simulated.yaml', env: {} }, MODULES));
    resolved.set(text, known);
    return known;
  }

  #sleep(ms: number): Promise<void> {
    const { scheduler } = this.#world;
    return new Promise((resolve) => scheduler.within(null, () => scheduler.after(ms, resolve)));
  }

  #say(step: string): void {
    this.steps.push(`${Math.floor(this.#world.scheduler.now)} ${step}`);
    if (process.env['SIMULATION_LIVE'] !== undefined) process.stderr.write(`${this.steps.at(-1)}\n`);
  }

  #do(what: string, step = what): void {
    this.#world.note(what);
    this.#say(step);
  }

  #log(): object {
    const note = (level: string) => (about: unknown, text?: string) => {
      if (process.env['SIMULATION_LOG'] !== undefined)
        this.#say(`${level} ${text ?? ''} ${JSON.stringify(about, errorText)}`);
    };
    const log = {
      debug: note('debug'),
      info: note('info'),
      warn: note('warn'),
      error: note('error'),
      isLevelEnabled: () => false,
    };
    return log;
  }
}

function isInProgress(outcome: string): boolean {
  return outcome === 'in progress';
}

function errorText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.stack : value;
}

function userOf(user: number): string {
  return `6b0e9a52-0000-4000-8000-00000000000${user}`;
}
