import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { describeUnless } from '../describe-unless.ts';
import { freePort } from '../free-port.ts';
import { lacksProgram, type Lack } from '../requirements.ts';
import { shared, type Server } from '../server.ts';
import type { Access } from './broker-config.ts';
import { KafkaBroker } from './broker.ts';
import { KAFKA_LIBRARIES } from './java.ts';
import { KafkaOracle } from './oracle.ts';

/** Why Apache Kafka cannot be run here, or null. */
export function lacksKafka(): Lack {
  if (existsSync(KAFKA_LIBRARIES)) return lacksProgram('java');
  return 'needs Apache Kafka: node test/support/kafka/install.ts';
}

/** Brokers, and clients to look at them. */
export interface Kafka {
  /** What a sink's `brokers` takes. */
  readonly addresses: readonly string[];
  readonly oracle: KafkaOracle;
}

export interface ClusterOptions extends Access {
  readonly brokers?: number;
  /** Where clients connect, by the broker's own port; a proxy, say. Absent: to the broker itself. */
  readonly advertised?: (port: number) => Promise<number>;
  /** More lines of the broker's properties. */
  readonly properties?: Readonly<Record<string, string>>;
  /** More flags of Java for each broker. */
  readonly java?: readonly string[];
}

/** Tests against brokers of their own; where there are none they are skipped, with the reason in the title. */
export function describeOnKafka(
  title: string,
  options: ClusterOptions,
  body: (cluster: KafkaCluster) => void | Promise<void>,
): void {
  describeUnless(lacksKafka(), title, async () => {
    const cluster = await KafkaCluster.start(options);
    afterAll(() => cluster.stop());
    await body(cluster);
  });
}

/** The same against the run's one broker: for tests that leave it alone, with topics and groups of their own. */
export function describeOnSharedKafka(title: string, body: (kafka: Kafka) => void | Promise<void>): void {
  describeUnless(lacksKafka(), title, async () => {
    const { url, stop } = await shared('kafka', launchKafka);
    const [address = '', inside = ''] = url.split(' ');
    const oracle = new KafkaOracle([inside]);
    afterAll(async () => {
      await oracle.stop();
      await stop();
    });
    await body({ addresses: [address], oracle });
  });
}

/** @returns as its URL where clients come in, and behind a space where the tests' own do */
export async function launchKafka(): Promise<Server> {
  const cluster = await KafkaCluster.start();
  const [broker] = cluster.brokers;
  return { url: `${broker?.address} ${broker?.inside}`, stop: () => cluster.stop() };
}

/** Brokers of Apache Kafka, each controller too. */
export class KafkaCluster implements Kafka {
  readonly brokers: readonly KafkaBroker[];
  readonly oracle: KafkaOracle;
  readonly #folder: string;

  private constructor(folder: string, brokers: readonly KafkaBroker[]) {
    this.#folder = folder;
    this.brokers = brokers;
    this.oracle = new KafkaOracle(brokers.map(({ inside }) => inside));
  }

  static async start(options: ClusterOptions = {}): Promise<KafkaCluster> {
    const { brokers: count = 1, advertised, user, tls, properties = {}, java = [] } = options;
    const folder = mkdtempSync(join(tmpdir(), 'millrace-kafka-'));
    const ids = Array.from({ length: count }, (_, i) => i + 1);
    const ports = await Promise.all(
      ids.map(async (id) => ({ id, own: await freePort(), peers: await freePort() })),
    );
    const voters = ports.map(({ id, peers }) => `${id}@127.0.0.1:${peers}`).join(',');
    const brokers = await Promise.all(
      ports.map(async (each) => {
        const shown = (await advertised?.(each.own)) ?? each.own;
        const inside = await freePort();
        return new KafkaBroker({ ...each, inside, shown, voters, count, folder, user, tls }, properties);
      }),
    );
    const cluster = new KafkaCluster(folder, brokers);
    try {
      for (const broker of brokers) broker.format();
      await Promise.all(brokers.map((broker) => broker.start(java)));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  get addresses(): string[] {
    return this.brokers.map(({ address }) => address);
  }

  async stop(): Promise<void> {
    await Promise.all([this.oracle.stop(), ...this.brokers.map((broker) => broker.kill())]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
