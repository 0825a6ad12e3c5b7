import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { describeOnKafka, type KafkaCluster } from '../support/kafka/cluster.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { ServeProcess } from '../support/serve-process.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';
import { makeMutant } from './mutants.ts';

const TYPE = join(import.meta.dirname, 'places-sink.js');
const PARTITIONS = 2;

/** A fleet with one sink that has places: what becomes of them is said by files. */
class Places {
  readonly folder: string;
  readonly fleet: Fleet;
  readonly #cluster: KafkaCluster;
  /** Changed, a reload exchanges the sink. */
  version = 1;
  to = ['up', 'down', 'picky'];
  sink = 'one';

  private constructor(folder: string, cluster: KafkaCluster) {
    this.folder = folder;
    this.#cluster = cluster;
    const { addresses, oracle } = cluster;
    this.fleet = new Fleet({ folder, addresses, oracle, partitions: PARTITIONS });
    onTestFinished(() => this.fleet.stop());
  }

  static async make(cluster: KafkaCluster): Promise<Places> {
    const places = new Places(await temporaryFolder(), cluster);
    await places.fleet.createTopics();
    return places;
  }

  config(name: string): string {
    const own = join(this.folder, name);
    mkdirSync(own, { recursive: true });
    const { folder, version, sink } = this;
    return writeConfig(own, {
      journal: this.fleet.journal,
      sinks: { [sink]: { type: TYPE, folder, version } },
      delivery: { retryInitial: '50ms', retryMax: '200ms' },
      envelope: { userIds: 'text' },
      routes: [{ match: '*', to: this.to.map((place) => `${sink}:${place}`) }],
    });
  }

  set(what: string, isSo: boolean): void {
    if (isSo) writeFileSync(join(this.folder, what), '');
    else rmSync(join(this.folder, what));
  }

  /** Ids, in the order and as often as they came. */
  given(place: string): string[] {
    const path = join(this.folder, `${place}.given`);
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  }

  async send(to: Serving, ...users: string[]): Promise<void> {
    for (const user of users) await this.fleet.send(user, () => [to.url]);
  }

  /** Until it has tried in vain to send what waits. */
  async tried(serving: Serving, events: number): Promise<void> {
    await until('what waits to be tried', async () => {
      const [sink] = (await serving.status()).sinks;
      return (sink?.retried ?? 0) >= events && sink?.waiting === events;
    });
  }

  /** @param times at once */
  async reload(serving: Serving, name: string, times = 1): Promise<void> {
    const before = reloads(serving);
    for (let n = 0; n < times; n += 1) {
      this.version += 1;
      this.config(name);
      serving.signal('SIGHUP');
    }
    await until('the reload', () => reloads(serving) >= before + times);
  }

  /** What the group says in words beside its offsets: how much of each partition each place has, while nothing is past. */
  async noted(): Promise<ReadonlyMap<number, Record<string, number>>> {
    const { oracle } = this.#cluster;
    const notes = await oracle.noted(`${this.fleet.name}.one`, this.fleet.topic);
    return new Map(
      Array.from(notes, ([partition, text]) => {
        const lanes = JSON.parse(text.replace(/^ahead: /, '') || '[]') as [string, string][];
        return [
          partition,
          Object.fromEntries(lanes.map(([name, words]) => [name, parseInt(words.split(' ')[1] ?? '', 36)])),
        ];
      }),
    );
  }

  /** Records of each partition. */
  async records(): Promise<readonly number[]> {
    const records = await this.#cluster.oracle.read(this.fleet.topic);
    return Array.from(
      { length: PARTITIONS },
      (_, at) => records.filter(({ partition }) => partition === at).length,
    );
  }

  async letters(): Promise<number> {
    const { stdout } = await millrace(['dead-letters', 'list', '--json', '--config', this.config('cli')]);
    return stdout.split('\n').length - 1;
  }

  async run(...args: string[]): Promise<void> {
    const { code, stderr } = await millrace([...args, '--config', this.config('cli')]);
    if (code !== 0) throw new Error(stderr);
  }

  async startProcess(name: string, main?: string): Promise<ServeProcess> {
    const process = new ServeProcess(this.config(name), main === undefined ? {} : { main });
    this.fleet.processes.add(process);
    await process.listening();
    return process;
  }

  async past(events: number): Promise<void> {
    const { oracle } = this.#cluster;
    await until('the sink to be past all', async () => {
      const offsets = await oracle.committed(`${this.fleet.name}.one`, this.fleet.topic);
      return [...offsets.values()].reduce((sum, each) => sum + each, 0) === events;
    });
  }
}

function reloads(serving: Serving): number {
  return serving.logLines().filter(({ msg }) => msg === 'reloaded').length;
}

const USERS = ['a', 'b', 'c', 'd', 'e', 'f'];
const IDS = USERS.map((user) => `msg_${user}_1`);

describeOnKafka('what is settled while one place is down', {}, (cluster) => {
  test('stays settled over reloads, partitions that change hands, a stop and a kill', async () => {
    const places = await Places.make(cluster);
    places.set('down.down', true);
    places.set('picky.refuses', true);
    const first = await Receiver.start(places.config('b1'));
    await places.send(first, ...USERS);
    await until('the letters', async () => (await places.letters()) === USERS.length);
    await places.run('dead-letters', 'drop', '--all');
    await places.tried(first, USERS.length);
    // By now nobody refuses: what comes back is delivered.
    places.set('picky.refuses', false);
    for (let n = 0; n < 2; n += 1) {
      await places.reload(first, 'b1');
      await places.tried(first, USERS.length);
    }
    const second = await places.startProcess('b2');
    await until('it to have partitions', () => second.stderr.includes('has partitions'));
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    await places.tried(second, USERS.length);
    const counts = await places.records();
    await until('all of it to be noted', async () => {
      const noted = await places.noted();
      return counts.every((n, at) => ['up', 'picky'].every((place) => (noted.get(at)?.[place] ?? 0) === n));
    });
    await second.kill('SIGKILL');
    const third = await Receiver.start(places.config('b3'));
    await places.tried(third, USERS.length);
    const erased = await millrace(['erase', 'a', '--now', '--config', places.config('b3')]);
    expect(erased.stdout + erased.stderr).toContain('the brokers keep what it had until');
    places.set('down.down', false);
    await places.past(USERS.length);
    for (const place of ['up', 'picky']) expect(places.given(place).toSorted(), place).toEqual(IDS);
    expect(places.given('down').toSorted()).toEqual(IDS.slice(1));
    expect(await places.letters()).toBe(0);
  });

  test('stays settled when routes name other places, two reloads come at once, and the sink has another name for a while', async () => {
    const places = await Places.make(cluster);
    places.set('down.down', true);
    const first = await Receiver.start(places.config('b1'));
    await places.send(first, ...USERS);
    await places.tried(first, USERS.length);
    places.to = ['up', 'new'];
    await places.reload(first, 'b1', 2);
    await places.send(first, 'y');
    await until('the new place to have it', () => places.given('new').length === 1);
    await places.tried(first, USERS.length);
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    places.sink = 'two';
    const second = await Receiver.start(places.config('b2'));
    await places.send(second, 'z');
    await until('the other sink to have it', () => places.given('new').length === 2);
    expect(await second.kill('SIGTERM')).toMatchObject({ code: 0 });
    places.sink = 'one';
    const third = await Receiver.start(places.config('b3'));
    await places.tried(third, USERS.length);
    places.set('down.down', false);
    await places.past(USERS.length + 2);
    const later = ['msg_y_1', 'msg_z_1'];
    for (const [place, ids] of [
      ['up', [...IDS, ...later]],
      ['new', later],
      ['picky', IDS],
      ['down', IDS],
    ] as const)
      expect(places.given(place).toSorted(), place).toEqual(ids);
  });

  test('a dead letter counts whose maker was killed before it had committed that, and one that was dropped', async () => {
    const places = await Places.make(cluster);
    places.set('picky.refuses', true);
    const { main, remove } = makeMutant('no commit');
    onTestFinished(remove);
    const first = await places.startProcess('b1', main);
    await places.send(first, 'a', 'b', 'c');
    await until('the letters', async () => (await places.letters()) === 3);
    await places.run('dead-letters', 'drop', '--all');
    await places.send(first, 'd', 'e', 'f');
    await until('more letters', async () => (await places.letters()) === 3);
    await first.kill('SIGKILL');
    places.set('picky.refuses', false);
    const second = await Receiver.start(places.config('b2'));
    await places.send(second, 'g');
    await places.past(7);
    expect(places.given('picky').toSorted()).toEqual([...IDS, 'msg_g_1']);
    expect(await places.letters()).toBe(3);
    // It is another delivery once it is retried.
    await places.run('dead-letters', 'retry', '--all');
    await until('them to be delivered', () => places.given('picky').length === 10);
    expect(await places.letters()).toBe(0);
  });

  test('who was paused and is refused when others have its events brings back no dead letter', async () => {
    const places = await Places.make(cluster);
    places.set('picky.refuses', true);
    const first = await places.startProcess('b1');
    const stalls = join(places.folder, 'picky.stalls');
    writeFileSync(stalls, String(first.pid));
    await places.send(first, 'a');
    await until('it to be sending', () => existsSync(`${stalls}.begun`));
    first.signal('SIGSTOP');
    const second = await Receiver.start(places.config('b2'));
    await until('the letter', async () => (await places.letters()) === 1);
    await places.run('dead-letters', 'drop', '--all');
    rmSync(stalls);
    first.signal('SIGCONT');
    await until('it to be refused', () => places.given('picky').length === 2);
    await until('it to find that it is late', () => first.stderr.includes('others may have its partition'));
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(await second.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(await places.letters()).toBe(0);
    expect(places.given('picky')).toEqual(['msg_a_1', 'msg_a_1']);
  });
});
