import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { endChild } from '../child-server.ts';
import { kept } from '../kept.ts';
import { javaFlags, KAFKA_LIBRARIES } from './java.ts';

/** A record as Apache's own consumer reads it. */
export interface KafkaRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Apache's own clients, which share no code with ours, in a process of their own that starts when they are first asked. */
export class KafkaOracle {
  readonly #brokers: readonly string[];
  #started: Running | null = null;
  #tail: Promise<unknown> = Promise.resolve();

  /** @param brokers the way in that tests do not break */
  constructor(brokers: readonly string[]) {
    this.#brokers = brokers;
  }

  async create(topic: string, partitions: number, replicas = 1, ...config: string[]): Promise<void> {
    await this.#ask(['create', topic, String(partitions), String(replicas), ...config]);
  }

  /** Gives a user the right to write to a topic. */
  async allow(user: string, topic: string): Promise<void> {
    await this.#ask(['allow', user, topic]);
  }

  async grow(topic: string, partitions: number): Promise<void> {
    await this.#ask(['grow', topic, String(partitions)]);
  }

  async delete(topic: string): Promise<void> {
    await this.#ask(['delete', topic]);
  }

  /** Deletes what lies before an offset, as retention does. */
  async trim(topic: string, partition: number, offset: number): Promise<void> {
    await this.#ask(['trim', topic, String(partition), String(offset)]);
  }

  /** All that lies in the topic, each partition in its order. */
  async read(topic: string): Promise<KafkaRecord[]> {
    return (await this.#ask(['read', topic])).map((line) => {
      const [partition = '', offset = '', key = '', value = '', ...headers] = line.split(' ');
      const named = headers.map((each): [string, string] => {
        const at = each.indexOf('=');
        return [each.slice(0, at), decode(each.slice(at + 1))?.toString() ?? ''];
      });
      return {
        partition: Number(partition),
        offset: Number(offset),
        key: decode(key),
        value: decode(value),
        headers: Object.fromEntries(named),
      };
    });
  }

  async write(
    topic: string,
    key: Buffer | null,
    value: Buffer | null,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const named = Object.entries(headers).map(([name, text]) => `${name}=${encode(Buffer.from(text))}`);
    await this.#ask(['write', topic, encode(key), encode(value), ...named]);
  }

  /** The offset that a group has committed for each partition of a topic. */
  async committed(group: string, topic: string): Promise<ReadonlyMap<number, number>> {
    return new Map((await this.#rows(group, topic)).map(([, at, offset]) => [Number(at), Number(offset)]));
  }

  /** What a group has written beside these. */
  async noted(group: string, topic: string): Promise<ReadonlyMap<number, string>> {
    const rows = await this.#rows(group, topic);
    return new Map(rows.map(([, at, , text = '']) => [Number(at), String(decode(text) ?? '')]));
  }

  /** Sets what a group without members has committed of a partition, as tools do that bring it elsewhere. */
  async commit(group: string, topic: string, partition: number, offset: number, text = ''): Promise<void> {
    const words = [group, topic, String(partition), String(offset), encode(Buffer.from(text))];
    await this.#ask(['commit', ...words]);
  }

  async #rows(group: string, topic: string): Promise<string[][]> {
    const rows = (await this.#ask(['committed', group])).map((line) => line.split(' '));
    return rows.filter(([name]) => name === topic);
  }

  async leader(topic: string): Promise<number> {
    return Number((await this.#ask(['leader', topic]))[0]);
  }

  async stop(): Promise<void> {
    process.off('exit', this.#kill);
    if (this.#started !== null) await endChild(this.#started.child);
  }

  readonly #kill = (): void => void this.#started?.child.kill('SIGKILL');

  get #running(): Running {
    if (this.#started === null) {
      this.#started = run(this.#brokers);
      process.once('exit', this.#kill);
    }
    return this.#started;
  }

  /** One command at a time. */
  #ask(words: readonly string[]): Promise<string[]> {
    const answer = this.#tail.then(() => this.#exchange(words));
    this.#tail = answer.catch(() => undefined);
    return answer;
  }

  async #exchange(words: readonly string[]): Promise<string[]> {
    const { child, lines: answers } = this.#running;
    child.stdin.write(`${words.join(' ')}\n`);
    const lines: string[] = [];
    for (;;) {
      const { done, value } = await answers.next();
      if (done === true) throw new Error(`the oracle ended at: ${words[0]}`);
      if (value === '.') return lines;
      if (value.startsWith('! ')) lines.length = 0;
      lines.push(value);
      if (!value.startsWith('! ')) continue;
      await answers.next();
      throw new Error(value.slice(2));
    }
  }
}

interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly lines: AsyncIterator<string>;
}

function run(brokers: readonly string[]): Running {
  const options = [`bootstrap.servers=${brokers.join(',')}`, 'fetch.max.wait.ms=10'];
  const child = spawn('java', [...javaFlags(compiled()), 'Oracle', ...options], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
}

/** The folder of the program: to compile it takes ten times as long as to start it. */
function compiled(): string {
  return kept('kafka-oracle', (folder) => {
    const source = join(import.meta.dirname, 'Oracle.java');
    const args = [
      '-J-XX:TieredStopAtLevel=1',
      '-proc:none',
      '-cp',
      `${KAFKA_LIBRARIES}/*`,
      '-d',
      folder,
      source,
    ];
    const { status, stderr } = spawnSync('javac', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`javac failed: ${stderr}`);
  });
}

function encode(bytes: Buffer | null): string {
  return bytes === null ? '-' : bytes.length === 0 ? '_' : bytes.toString('base64');
}

function decode(text: string): Buffer | null {
  return text === '-' ? null : text === '_' ? Buffer.alloc(0) : Buffer.from(text, 'base64');
}
