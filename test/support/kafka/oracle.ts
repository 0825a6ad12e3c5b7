import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { KAFKA_LIBRARIES } from './install.ts';

/** A record as Apache's own consumer reads it. */
export interface KafkaRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Apache's own clients, which share no code with ours, in a process of their own. */
export class KafkaOracle {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  #tail: Promise<unknown> = Promise.resolve();

  /** @param properties of its clients */
  constructor(properties: Readonly<Record<string, string>>) {
    const source = join(import.meta.dirname, 'Oracle.java');
    const options = Object.entries(properties).map(([name, value]) => `${name}=${value}`);
    const flags = ['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
    this.#child = spawn('java', [...flags, '-cp', `${KAFKA_LIBRARIES}/*`, source, ...options], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    process.once('exit', this.#kill);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
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
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#kill();
    await exited;
  }

  readonly #kill = (): void => void this.#child.kill('SIGKILL');

  /** One command at a time. */
  #ask(words: readonly string[]): Promise<string[]> {
    const answer = this.#tail.then(() => this.#exchange(words));
    this.#tail = answer.catch(() => undefined);
    return answer;
  }

  async #exchange(words: readonly string[]): Promise<string[]> {
    this.#child.stdin.write(`${words.join(' ')}\n`);
    const lines: string[] = [];
    for (;;) {
      const { done, value } = await this.#lines.next();
      if (done === true) throw new Error(`the oracle ended at: ${words[0]}`);
      if (value === '.') return lines;
      if (value.startsWith('! ')) lines.length = 0;
      lines.push(value);
      if (!value.startsWith('! ')) continue;
      await this.#lines.next();
      throw new Error(value.slice(2));
    }
  }
}

function encode(bytes: Buffer | null): string {
  return bytes === null ? '-' : bytes.length === 0 ? '_' : bytes.toString('base64');
}

function decode(text: string): Buffer | null {
  return text === '-' ? null : text === '_' ? Buffer.alloc(0) : Buffer.from(text, 'base64');
}
