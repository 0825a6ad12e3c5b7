import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import type { Kafka } from '../support/kafka/cluster.ts';
import { type Ended, millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { ServeProcess } from '../support/serve-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { jsonLines } from '../support/json-lines.ts';

const HERE = import.meta.dirname;

type Role = 'receive' | 'deliver' | 'both';

function roleArgs(role: Role): string[] {
  return role === 'both' ? [] : ['--role', role];
}

/** An event of a user as its sender has it. */
export function bodyOf(user: string, fields: object = {}): Buffer {
  const whose = { team_id: 'team', user_id: user, client_user_id: user };
  return Buffer.from(JSON.stringify({ event_type: 'daily.data.steps.updated', ...whose, ...fields }));
}

export interface FleetOptions {
  readonly folder: string;
  readonly partitions?: number;
  readonly replicas?: number;
  readonly sinks?: readonly string[];
  readonly session?: string;
  /** More of `journal`, of each sink, and of the config. */
  readonly journal?: object;
  readonly sink?: object;
  readonly more?: { readonly sinks?: object } & Readonly<Record<string, unknown>>;
}

/** Receivers and deliverers that share a journal in topics of their own, and what went in and came out, written down. */
export class Fleet {
  readonly folder: string;
  readonly name = `f${randomUUID().slice(0, 8)}`;
  protected readonly kafka: Kafka;
  readonly #options: FleetOptions;
  readonly processes = new Set<ServeProcess>();
  /** More of `envelope`, of configs that are written from now on. */
  envelope: object = {};
  #numbers = new Map<string, number>();

  constructor(kafka: Kafka, options: FleetOptions) {
    this.kafka = kafka;
    this.#options = options;
    this.folder = options.folder;
    for (const name of ['sent', 'acknowledged', 'faults', ...this.sinks.map((sink) => `sink-${sink}`)])
      writeFileSync(join(this.folder, `${name}.jsonl`), '');
  }

  /** With its topics, until the end of the test. */
  static async make(kafka: Kafka, options: Partial<FleetOptions> = {}): Promise<Fleet> {
    const fleet = new Fleet(kafka, { folder: await temporaryFolder(), ...options });
    onTestFinished(() => fleet.stop());
    await fleet.createTopics();
    return fleet;
  }

  get sinks(): readonly string[] {
    return this.#options.sinks ?? ['one', 'two'];
  }

  get topic(): string {
    return `${this.name}.events`;
  }

  async createTopics(): Promise<void> {
    const { partitions = 3, replicas = 1 } = this.#options;
    const { oracle } = this.kafka;
    for (const topic of ['events', 'window'])
      await oracle.create(`${this.name}.${topic}`, partitions, replicas);
    for (const topic of ['quarantine', 'dead-letters'])
      await oracle.create(`${this.name}.${topic}`, 1, replicas, 'cleanup.policy=compact');
  }

  get journal(): object {
    const { session = '3s', journal } = this.#options;
    return {
      type: 'kafka',
      brokers: this.kafka.addresses,
      tls: { enabled: false },
      topic: this.topic,
      quarantineTopic: `${this.name}.quarantine`,
      deadLetterTopic: `${this.name}.dead-letters`,
      windowTopic: `${this.name}.window`,
      group: this.name,
      session,
      timeout: '5s',
      ...journal,
    };
  }

  /** @param name of the process: each has a folder for what it says of itself */
  config(name: string): string {
    const own = join(this.folder, name);
    mkdirSync(own, { recursive: true });
    const type = join(HERE, 'history-sink.js');
    const { sink, more: { sinks: others, ...more } = {} } = this.#options;
    const sinks = this.sinks.map((each) => {
      return [each, { type, path: join(this.folder, `sink-${each}.jsonl`), ...sink }] as const;
    });
    return writeConfig(own, {
      journal: this.journal,
      sinks: { ...Object.fromEntries(sinks), ...others },
      routes: [{ match: '*', to: [...this.sinks] }],
      envelope: { userIds: 'text', ...this.envelope },
      ...more,
    });
  }

  /** Inside the test, for those that it does not kill. */
  startInside(name: string, role: Role): Promise<Receiver> {
    return Receiver.start(this.config(name), { args: roleArgs(role) });
  }

  /** @param main the program to run instead of the built one */
  async start(name: string, role: Role, main?: string): Promise<ServeProcess> {
    const args = roleArgs(role);
    const process = new ServeProcess(this.config(name), { args, ...(main === undefined ? {} : { main }) });
    this.processes.add(process);
    void process.exited.then(() => {
      this.processes.delete(process);
      if (existsSync(this.folder))
        writeFileSync(join(this.folder, name, `${process.pid}.log`), process.stderr);
    });
    await process.listening();
    return process;
  }

  /**
   * Sends the next event of a user, as the sender would: to one receiver after the other, until one answers with 2xx.
   * @param again how often it is repeated, to the receivers in turn, after that
   */
  async send(user: string, receivers: () => readonly string[], again = 0): Promise<void> {
    const number = (this.#numbers.get(user) ?? 0) + 1;
    this.#numbers.set(user, number);
    const id = `msg_${user}_${number}`;
    const body = bodyOf(user, { number });
    appendFileSync(join(this.folder, 'sent.jsonl'), `${JSON.stringify([id, user, number])}\n`);
    let answered = 0;
    for (let n = 0; answered <= again; n += 1) {
      const urls = receivers();
      const answer = await postSigned(urls[(number + n) % urls.length] ?? '', body, { id }).catch(() => null);
      if (answer?.status === 202 || answer?.status === 200) answered += 1;
      else await new Promise((resolve) => setTimeout(resolve, 50));
      if (answered > 0) this.#acknowledge(id, user, number);
    }
  }

  readonly #noted = new Set<string>();
  #acknowledge(id: string, user: string, number: number): void {
    if (this.#noted.has(id)) return;
    this.#noted.add(id);
    appendFileSync(join(this.folder, 'acknowledged.jsonl'), `${JSON.stringify([id, user, number])}\n`);
  }

  get acknowledged(): number {
    return this.#noted.size;
  }

  /** @param from milliseconds since the epoch; it is over now */
  noteFault(from: number, what: string, pid: number | null): void {
    appendFileSync(join(this.folder, 'faults.jsonl'), `${JSON.stringify([from, Date.now(), what, pid])}\n`);
  }

  /** Ids that a sink was given, once for each time. */
  given(sink: string): string[] {
    const path = join(this.folder, `sink-${sink}.jsonl`);
    if (!existsSync(path)) return [];
    return jsonLines<[string]>(readFileSync(path)).map(([id]) => id);
  }

  /** Whether every sink has all that was acknowledged. */
  get isDelivered(): boolean {
    return this.sinks.every((sink) => this.isDeliveredTo(sink));
  }

  isDeliveredTo(sink: string): boolean {
    const given = new Set(this.given(sink));
    return [...this.#noted].every((id) => given.has(id));
  }

  /** Runs a command with a config of its own. */
  run(...args: string[]): Promise<Ended> {
    return millrace([...args, '--config', this.config('cli')]);
  }

  async listed(what: 'quarantine' | 'dead-letters'): Promise<readonly { key: number; id: string }[]> {
    const { stdout } = await this.run(what, 'list', '--json');
    return jsonLines(stdout);
  }

  /** How many records the group of a sink is past. */
  async past(sink: string): Promise<number> {
    const places = await this.kafka.oracle.committed(`${this.name}.${sink}`, this.topic);
    return [...places.values()].reduce((sum, each) => sum + each, 0);
  }

  /** What the judge says. */
  judge(): { ok: boolean; text: string } {
    const judge = join(HERE, 'judge.js');
    const { status, stdout, stderr } = spawnSync(process.execPath, [judge, this.folder], {
      encoding: 'utf8',
    });
    return { ok: status === 0, text: `${stdout}${stderr}` };
  }

  async stop(): Promise<void> {
    await Promise.all(Array.from(this.processes, (process) => process.kill('SIGKILL')));
  }
}
