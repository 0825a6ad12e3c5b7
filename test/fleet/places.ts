import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import type { Kafka } from '../support/kafka/cluster.ts';
import { writeConfig } from '../support/millrace.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

const TYPE = join(import.meta.dirname, 'places-sink.js');

/** A fleet with one sink that has places: what becomes of them is said by files. */
export class Places extends Fleet {
  /** Changed, a reload exchanges the sink. */
  version = 1;
  to = ['up', 'down', 'picky'];
  sink = 'one';

  static async on(kafka: Kafka, partitions = 2): Promise<Places> {
    // Longer than a busy machine keeps one waiting that is alive: nothing would come twice but by what a test does.
    const places = new Places(kafka, { folder: await temporaryFolder(), partitions, session: '6s' });
    onTestFinished(() => places.stop());
    await places.createTopics();
    return places;
  }

  override config(name: string): string {
    const own = join(this.folder, name);
    mkdirSync(own, { recursive: true });
    const { folder, version, sink } = this;
    return writeConfig(own, {
      journal: this.journal,
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
  override given(place: string): string[] {
    const path = join(this.folder, `${place}.given`);
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  }

  async sendTo(to: Serving, ...users: string[]): Promise<void> {
    for (const user of users) await this.send(user, () => [to.url]);
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
    const notes = await this.kafka.oracle.noted(`${this.name}.one`, this.topic);
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

  async deadLetters(): Promise<number> {
    return (await this.listed('dead-letters')).length;
  }

  async isPast(events: number): Promise<void> {
    await until('the sink to be past all', async () => (await this.past('one')) === events);
  }
}

function reloads(serving: Serving): number {
  return serving.logLines().filter(({ msg }) => msg === 'reloaded').length;
}
