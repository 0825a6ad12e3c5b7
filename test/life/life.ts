import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { childEnvironment, type Ended, MAIN, millraceProcess } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { MOODS, TARGETS, Targets } from './targets.ts';
import { World } from './world.ts';

/** How often each step is taken. */
const STEPS = {
  reload: 5,
  kill: 3,
  stop: 2,
  mood: 8,
  pause: 1,
  retry: 2,
  compact: 1,
  flush: 1,
  erase: 2,
  load: 2,
  export: 2,
  reconcile: 2,
} as const;
type Step = keyof typeof STEPS;

/** A receiver to which everything happens that the commands and the world have for it, while events come in. */
export class Life {
  readonly world: World;
  readonly targets: Targets;
  /** What should not have been said. */
  readonly wrong: string[] = [];
  /** What was done, for who has to find out why. */
  readonly log: string[] = [];
  #receiver: ReceiverProcess | null = null;
  #config = '';
  #isOver = false;
  /** Whether a reload may still come that nobody has seen. */
  #isUnclear = false;
  readonly #unfinished: string[] = [];
  readonly #asides = new Map<string, Promise<void>>();

  private constructor(world: World, targets: Targets) {
    this.world = world;
    this.targets = targets;
  }

  static async begin(folder: string, random: () => number): Promise<Life> {
    const world = new World(folder, random);
    const life = new Life(world, await Targets.start(world.bodies));
    await life.#start(true);
    return life;
  }

  /** Events come in throughout. */
  async live(steps: number): Promise<void> {
    const posting = [this.#post(), this.#post(), this.#post()];
    const all = Object.entries(STEPS).flatMap(([step, often]) => Array<Step>(often).fill(step as Step));
    for (let n = 0; n < steps; n += 1) {
      await wait(this.world.random() * 600);
      const step = this.world.pick(all);
      this.log.push(step);
      await this.#take(step);
    }
    this.#isOver = true;
    await Promise.all(posting);
    await Promise.all(this.#asides.values());
  }

  /** Everything is well again: what waits goes where it is due, and what was broken off is done. */
  async heal(): Promise<void> {
    for (const target of TARGETS) this.targets.turn(target, 'takes');
    await this.#receiver?.kill('SIGTERM');
    await this.#start(true);
    const receiver = this.#receiver as ReceiverProcess;
    await until('all to be delivered', async () => {
      await this.run('dead-letters', 'retry', '--all');
      return (await receiver.drained()).journal.deadLetters === 0;
    });
    for (const user of this.#unfinished) await this.#expect(0, 'erase', '--now', user);
  }

  async end(): Promise<void> {
    await this.#receiver?.kill('SIGTERM');
  }

  run(...args: string[]): Promise<Ended> {
    return millraceProcess([...args, '--config', this.#config], { cwd: this.world.folder });
  }

  /** Brings the database and the export up to date, and killed, if that is wanted, at some moment. */
  async work(command: 'load' | 'export', killed: boolean): Promise<void> {
    const { world } = this;
    const to =
      command === 'load' ? ['--to', `duckdb:${world.at('rows.duckdb')}`] : ['--out', world.at('rows')];
    const args = [MAIN, command, world.at('archive'), ...to, '--config', this.#config];
    const child = spawn(process.execPath, args, {
      env: childEnvironment(),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const exited = once(child, 'close');
    if (killed)
      await Promise.race([exited, wait(300 + world.random() * 2000).then(() => child.kill('SIGKILL'))]);
    const [code] = (await exited) as [number | null];
    if (!killed && code !== 0) this.wrong.push(`${command} ended with ${code}: ${said.slice(-400)}`);
  }

  async #take(step: Step): Promise<void> {
    const { world, targets } = this;
    if (step === 'mood') targets.turn(world.pick(TARGETS.slice(0, 3)), world.pick(MOODS));
    else if (step === 'reload') await this.#reload();
    else if (step === 'kill') await this.#restart('SIGKILL');
    else if (step === 'stop') await this.#restart('SIGTERM');
    else if (step === 'pause') {
      this.#receiver?.signal('SIGSTOP');
      await wait(world.random() * 1500);
      this.#receiver?.signal('SIGCONT');
    } else if (step === 'erase') {
      const user = world.users.shift()!;
      world.users.push(randomUUID());
      world.erased.add(user);
      this.#aside(`erase ${user}`, async () => {
        if ((await this.run('erase', '--now', user)).code !== 0) this.#unfinished.push(user);
      });
    } else if (step === 'load' || step === 'export') this.#aside(step, () => this.work(step, true));
    else if (step === 'reconcile') this.#aside(step, () => this.#reconcile());
    else if (step === 'retry') this.#aside(step, () => this.run('dead-letters', 'retry', '--all'));
    else if (step === 'compact') this.#aside(step, () => this.run('archive', 'compact', world.at('archive')));
    else this.#aside(step, () => this.run('flush'));
  }

  /** Beside what follows, unless the same is under way. */
  #aside(name: string, work: () => Promise<unknown>): void {
    if (this.#asides.has(name)) return;
    this.#asides.set(
      name,
      work().then(() => void this.#asides.delete(name)),
    );
  }

  async #reconcile(): Promise<void> {
    const { code, stdout } = await this.run('reconcile', '--json');
    if (code !== 4) return;
    const { differences } = JSON.parse(stdout) as { differences: { code: string }[] };
    // By a config that is not in force yet, the sink of another name is not there.
    const others = differences.filter((each) => each.code !== 'abandoned');
    if (others.length > 0) this.wrong.push(`reconcile: ${JSON.stringify(others)}`);
  }

  /** One in three times a second one comes right behind it. */
  async #reload(): Promise<void> {
    const { world } = this;
    const receiver = this.#receiver as ReceiverProcess;
    const before = reloads(receiver);
    const twice = world.chance(1 / 3);
    for (let n = twice ? 2 : 1; n > 0; n -= 1) {
      this.#config = world.configure(this.targets);
      receiver.signal('SIGHUP');
    }
    const end = performance.now() + world.random() * 4000;
    await until('the reload', () => reloads(receiver) > before || performance.now() > end);
    if (twice || reloads(receiver) === before) this.#isUnclear = true;
    if (!this.#isUnclear) world.certain = world.versions.length - 1;
  }

  async #restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.#receiver?.kill(signal);
    await this.#start(false);
  }

  /** With another config one in three times; with one that has all sinks where events wait for another. */
  async #start(all: boolean): Promise<void> {
    const { world } = this;
    this.#receiver = null;
    let isNew = all || world.chance(1 / 3);
    let isFull = all;
    await until('the receiver to start', async () => {
      if (isNew) this.#config = world.configure(this.targets, isFull);
      const receiver = new ReceiverProcess(this.#config, { cwd: world.folder });
      try {
        await receiver.listening();
      } catch {
        // A command may own the journal for a moment.
        isFull = isNew = receiver.stderr.includes('events wait for it');
        if (!isNew && !receiver.stderr.includes(' is held by ')) throw new Error(receiver.stderr);
        return false;
      }
      this.#receiver = receiver;
      return true;
    });
    world.certain = world.versions.length - 1;
    this.#isUnclear = false;
  }

  async #post(): Promise<void> {
    const { world } = this;
    while (!this.#isOver) {
      await wait(world.random() * 10);
      const ids = [...world.posted.keys()];
      const id = world.chance(0.1) && ids.length > 0 ? world.pick(ids) : world.event();
      const posted = world.posted.get(id)!;
      const url = this.#receiver?.url;
      if (posted.isUnderWay || url === undefined) continue;
      posted.isUnderWay = true;
      try {
        const { status } = await postSigned(url, world.bodies.get(id), { id });
        if (status < 300) posted.to ??= world.versions.length - 1;
        else if (status !== 503 && status !== 429) this.wrong.push(`${id} was answered ${status}`);
      } catch {
        // The receiver was killed.
      }
      posted.isUnderWay = false;
    }
  }

  async #expect(code: number, ...args: string[]): Promise<void> {
    const ended = await this.run(...args);
    if (ended.code !== code) this.wrong.push(`${args.join(' ')} ended with ${ended.code}: ${ended.stderr}`);
  }
}

const reloads = (receiver: ReceiverProcess): number =>
  receiver.logLines().filter(({ msg }) => msg === 'reloaded').length;
