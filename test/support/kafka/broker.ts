import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endChild, isRunning, listens, pauseChild } from '../child-server.ts';
import { kept } from '../kept.ts';
import { until } from '../until.ts';
import { configOf, type BrokerConfig } from './broker-config.ts';
import { javaFlags } from './java.ts';

/** Milliseconds a Java program may take to come up on a busy machine. */
const START = 300_000;
const CLUSTER_ID = 'MillraceTestsCluster00';

/** A broker of Apache Kafka, a controller too. */
export class KafkaBroker {
  readonly id: number;
  /** Of the listener of clients. */
  readonly port: number;
  /** Where the tests' own clients come in. */
  readonly inside: string;
  readonly address: string;
  readonly #config: BrokerConfig;
  readonly #file: string;
  readonly #properties: Readonly<Record<string, string>>;
  #child: ChildProcess | null = null;

  /** @param properties more of the broker's */
  constructor(config: BrokerConfig, properties: Readonly<Record<string, string>>) {
    this.id = config.id;
    this.port = config.own;
    this.inside = `127.0.0.1:${config.inside}`;
    this.address = `127.0.0.1:${config.shown}`;
    this.#config = config;
    this.#file = join(config.folder, `broker-${config.id}.properties`);
    this.#properties = { ...configOf(config), ...properties };
  }

  /** Makes its folder. */
  format(): void {
    const { folder, user } = this.#config;
    const data = join(folder, `data-${this.id}`);
    if (user !== undefined) {
      const scram = `SCRAM-SHA-512=[name=${user.name},password=${user.password}]`;
      return formatBy(this.#written(data), '--add-scram', scram);
    }
    const any = kept('kafka-formatted', (made) => formatBy(this.#written(made)));
    mkdirSync(data);
    copyFileSync(join(any, 'bootstrap.checkpoint'), join(data, 'bootstrap.checkpoint'));
    const names = [`node.id=${this.id}`, `directory.id=${randomBytes(16).toString('base64url')}`];
    const lines = readFileSync(join(any, 'meta.properties'), 'utf8').split('\n');
    const others = lines.filter((line) => !/^(node|directory)\.id=/.test(line));
    writeFileSync(join(data, 'meta.properties'), [...others, ...names].join('\n'));
    this.#written(data);
  }

  /** Writes its properties, with that folder in them. */
  #written(data: string): string {
    const lines = Object.entries({ ...this.#properties, 'log.dirs': data }).map((each) => each.join('='));
    writeFileSync(this.#file, lines.join('\n'));
    return this.#file;
  }

  /** At first, and after `kill`; resolves once it takes connections. */
  async start(flags: readonly string[] = []): Promise<void> {
    const child = spawn('java', [...javaFlags(), ...flags, 'kafka.Kafka', this.#file], {
      stdio: 'ignore',
    });
    this.#child = child;
    // A test process that is ended before its time must not leave it behind.
    process.once('exit', this.#kill);
    await until(
      `broker ${this.id} to listen`,
      () => isRunning('the broker', child) && listens(this.port),
      START,
    );
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    process.off('exit', this.#kill);
    await this.#end('SIGKILL');
  }

  /** Lets it end in order. */
  end(): Promise<void> {
    return this.#end('SIGTERM');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child !== null) await endChild(this.#child, signal);
  }

  /** Stops it in its tracks: connections stay, and nothing is answered until `resume`. */
  async pause(): Promise<void> {
    if (this.#child !== null) await pauseChild(this.#child);
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  readonly #kill = (): void => void this.#child?.kill('SIGKILL');
}

function formatBy(file: string, ...more: readonly string[]): void {
  const args = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', file, ...more];
  const { status, stderr, stdout } = spawnSync('java', [...javaFlags(), ...args], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`formatting failed: ${stdout}${stderr}`);
}
