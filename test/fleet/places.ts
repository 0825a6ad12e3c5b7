import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import type { Kafka } from '../support/kafka/cluster.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ServeProcess } from '../support/serve-process.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

const TYPE = join(import.meta.dirname, 'places-sink.js');

/** A fleet with one sink that has places: what becomes of them is said by files. */
export class Places {
  readonly folder: string;
  readonly fleet: Fleet;
  readonly #kafka: Kafka;
  /** Changed, a reload exchanges the sink. */
  version = 1;
  to = ['up', 'down', 'picky'];
  sink = 'one';

  readonly #partitions: number;

  private constructor(folder: string, kafka: Kafka, partitions: number) {
    this.folder = folder;
    this.#kafka = kafka;
    this.#partitions = partitions;
    // Longer than a busy machine keeps one waiting that is alive: nothing would come twice but by what a test does.
    this.fleet = new Fleet(kafka, { folder, partitions, session: '6s' });
    onTestFinished(() => this.fleet.stop());
  }

  static async make(kafka: Kafka, partitions = 2): Promise<Places> {
    const places = new Places(await temporaryFolder(), kafka, partitions);
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
    const { oracle } = this.#kafka;
    const notes = await oracle.noted(`${this.fleet.name}.one`, this.fleet.topic);
    return new Map(
      Array.from(notes, ([partition, text]) => {
        const [, ...lanes] = JSON.parse(text.replace(/^ahead: /, '') || '[]') as [
          number,
          ...[string, string][],
        ];
        return [
          partition,
          Object.fromEntries(lanes.map(([name, words]) => [name, parseInt(words.split(' ')[1] ?? '', 36)])),
        ];
      }),
    );
  }

  /** Records of each partition. */
  async records(): Promise<readonly number[]> {
    const records = await this.#kafka.oracle.read(this.fleet.topic);
    return Array.from(
      { length: this.#partitions },
      (_, at) => records.filter(({ partition }) => partition === at).length,
    );
  }

  async letters(): Promise<number> {
    return (await this.fleet.listed('dead-letters')).length;
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
    await until('the sink to be past all', async () => (await this.fleet.past('one')) === events);
  }
}

function reloads(serving: Serving): number {
  return serving.logLines().filter(({ msg }) => msg === 'reloaded').length;
}
