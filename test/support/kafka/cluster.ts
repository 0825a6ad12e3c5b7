import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { isRunning, listens } from '../child-server.ts';
import { freePort } from '../free-port.ts';
import { lacksProgram, skipped, type Lack } from '../requirements.ts';
import { until } from '../until.ts';
import { configOf, type Access } from './broker-config.ts';
import { KAFKA_LIBRARIES } from './install.ts';
import { KafkaOracle } from './oracle.ts';

/** Milliseconds a Java program may take to come up on a busy machine. */
const START = 150_000;
const CLUSTER_ID = 'MillraceTestsCluster00';

/** Why Apache Kafka cannot be run here, or null. */
export function lacksKafka(): Lack {
  if (existsSync(KAFKA_LIBRARIES)) return lacksProgram('java');
  return 'needs Apache Kafka: node test/support/kafka/install.ts';
}

export interface ClusterOptions extends Access {
  readonly brokers?: number;
  /** Where clients are told to connect, by the broker's own port; a proxy, say. Absent: to the broker itself. */
  readonly advertised?: (port: number) => Promise<number>;
  /** Starts only with MILLRACE_KAFKA=all. */
  readonly longRun?: boolean;
  /** More lines of the broker's properties. */
  readonly properties?: Readonly<Record<string, string>>;
}

/** Tests against a broker of their own; where there is none they are skipped, with the reason in the title. */
export function describeOnKafka(
  title: string,
  options: ClusterOptions,
  body: (cluster: KafkaCluster) => void | Promise<void>,
): void {
  const isLong = options.longRun === true && process.env['MILLRACE_KAFKA'] !== 'all';
  const lack = isLong ? 'needs MILLRACE_KAFKA=all' : lacksKafka();
  describe.skipIf(lack !== null)(`${title}${skipped(lack)}`, () =>
    // oxlint-disable-next-line vitest/warn-todo -- without a test in it the skipped group would not be reported
    lack === null ? withCluster(options, body) : test.todo('is not run here'),
  );
}

async function withCluster(
  options: ClusterOptions,
  body: (cluster: KafkaCluster) => void | Promise<void>,
): Promise<void> {
  const cluster = await KafkaCluster.start(options);
  afterAll(() => cluster.stop());
  await body(cluster);
}

/** Brokers of Apache Kafka, each controller too, and clients to look at them. */
export class KafkaCluster {
  readonly brokers: readonly KafkaBroker[];
  readonly oracle: KafkaOracle;
  readonly #folder: string;

  private constructor(folder: string, brokers: readonly KafkaBroker[], oracle: KafkaOracle) {
    this.#folder = folder;
    this.brokers = brokers;
    this.oracle = oracle;
  }

  static async start({
    brokers: count = 1,
    advertised,
    user,
    tls,
    properties = {},
  }: ClusterOptions = {}): Promise<KafkaCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-kafka-'));
    const ids = Array.from({ length: count }, (_, i) => i + 1);
    const ports = await Promise.all(
      ids.map(async (id) => ({ id, own: await freePort(), peers: await freePort() })),
    );
    const voters = ports.map(({ id, peers }) => `${id}@127.0.0.1:${peers}`).join(',');
    const brokers = await Promise.all(
      ports.map(async ({ id, own, peers }) => {
        const shown = (await advertised?.(own)) ?? own;
        const inside = await freePort();
        const config = configOf({
          id,
          own,
          peers,
          inside,
          shown,
          voters,
          count,
          folder,
          user,
          tls,
        });
        const file = join(folder, `broker-${id}.properties`);
        const lines = Object.entries({ ...config, ...properties }).map(([name, value]) => `${name}=${value}`);
        writeFileSync(file, lines.join('\n'));
        return new KafkaBroker(id, own, shown, inside, file, user);
      }),
    );
    const oracle = new KafkaOracle({
      // Not by the way that tests break.
      'fetch.max.wait.ms': '10',
      'bootstrap.servers': brokers.map(({ inside }) => `127.0.0.1:${inside}`).join(','),
    });
    const cluster = new KafkaCluster(folder, brokers, oracle);
    try {
      for (const broker of brokers) broker.format();
      await Promise.all(brokers.map((broker) => broker.start()));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** What a sink's `brokers` takes. */
  get addresses(): string[] {
    return this.brokers.map(({ address }) => address);
  }

  async stop(): Promise<void> {
    await Promise.all([this.oracle.stop(), ...this.brokers.map((broker) => broker.kill())]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export class KafkaBroker {
  readonly id: number;
  /** Of the listener of clients. */
  readonly port: number;
  /** Where the tests' own clients come in. */
  readonly inside: number;
  readonly address: string;
  readonly #file: string;
  readonly #user: ClusterOptions['user'];
  #child: ChildProcess | null = null;

  constructor(
    id: number,
    port: number,
    shown: number,
    inside: number,
    file: string,
    user: ClusterOptions['user'],
  ) {
    this.id = id;
    this.port = port;
    this.inside = inside;
    this.address = `127.0.0.1:${shown}`;
    this.#file = file;
    this.#user = user;
  }

  format(): void {
    const scram =
      this.#user === undefined
        ? []
        : ['--add-scram', `SCRAM-SHA-512=[name=${this.#user.name},password=${this.#user.password}]`];
    const args = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', this.#file, ...scram];
    const { status, stderr, stdout } = spawnSync('java', [...JAVA, ...args], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`formatting failed: ${stdout}${stderr}`);
  }

  /** At first, and after `kill`; resolves once it takes connections. */
  async start(): Promise<void> {
    const child = spawn('java', [...JAVA, 'kafka.Kafka', this.#file], { stdio: 'ignore' });
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
    const child = this.#child;
    process.off('exit', this.#kill);
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    this.#kill();
    await exited;
  }

  /** Stops it in its tracks: connections stay, and nothing is answered until `resume`. */
  async pause(): Promise<void> {
    const pid = this.#child?.pid ?? 0;
    this.#child?.kill('SIGSTOP');
    await until('every thread to stop', () =>
      / T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, '')),
    );
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  readonly #kill = (): void => void this.#child?.kill('SIGKILL');
}

/** Small and quick to start, as nothing here runs for long. */
const JAVA = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', `${KAFKA_LIBRARIES}/*`];
