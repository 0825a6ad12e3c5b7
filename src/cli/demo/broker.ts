import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { startListening } from '../../lib/listen.ts';
import { usageError } from '../io.ts';
import { startChild, unlessInterrupted } from './child.ts';

export interface Broker {
  /** `127.0.0.1:port` */
  readonly address: string;
  /** What it said last, once it has ended; null while it runs. */
  ended(): string | null;
  stop(): Promise<void>;
}

/** Small and quick to start, for it runs a minute. */
const JAVA = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
const CLUSTER_ID = 'MillraceDemoCluster000';

export const INSTALL =
  '--fleet needs Apache Kafka: unpack a release of https://kafka.apache.org/downloads and name its folder with --kafka or KAFKA_HOME' +
  ' (and install Java 17 or later); or name a broker that runs: --brokers localhost:9092';

/**
 * Starts one broker of an installed Apache Kafka, with its data below `folder`. It does not listen yet.
 * @param home folder of a release, or with its jars
 * @throws MillraceError usage where Kafka or Java is not installed
 */
export async function startBroker(home: string, folder: string, signal: AbortSignal): Promise<Broker> {
  const classes = ['-cp', `${librariesOf(resolve(home))}/*`];
  const [port, peers] = [await freePort(), await freePort()];
  const file = join(folder, 'broker.properties');
  const data = join(folder, 'broker');
  writeFileSync(file, propertiesOf(port, peers, data));
  const format = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', file];
  const formatting = startChild('java', [...JAVA, ...classes, ...format]);
  const code = await unlessInterrupted(formatting, signal, formatting.ended);
  if (code !== 0) throw usageError(`${INSTALL} (java: ${formatting.said()})`);
  const broker = startChild('java', [...JAVA, ...classes, 'kafka.Kafka', file]);
  return {
    address: `127.0.0.1:${port}`,
    ended: () => (broker.isOver() ? broker.said() : null),
    stop: async () => {
      await broker.end('SIGKILL');
      await rm(data, { recursive: true, force: true });
    },
  };
}

/** Where the jars of a release lie. */
function librariesOf(home: string): string {
  for (const folder of [join(home, 'libs'), home]) {
    try {
      if (readdirSync(folder).some((name) => /^kafka_[\d.]+-[\d.]+\.jar$/.test(name))) return folder;
    } catch {
      // Not there: the next, or the message.
    }
  }
  throw usageError(`${home}: no release of Apache Kafka, for there is no libs/kafka_*.jar. ${INSTALL}`);
}

function propertiesOf(port: number, peers: number, folder: string): string {
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@127.0.0.1:${peers}`,
    'controller.listener.names': 'PEERS',
    listeners: `CLIENTS://127.0.0.1:${port},PEERS://127.0.0.1:${peers}`,
    'advertised.listeners': `CLIENTS://127.0.0.1:${port}`,
    'listener.security.protocol.map': 'CLIENTS:PLAINTEXT,PEERS:PLAINTEXT',
    'inter.broker.listener.name': 'CLIENTS',
    // A backslash would begin an escape.
    'log.dirs': folder.replaceAll('\\', '/'),
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    'log.cleaner.dedupe.buffer.size': '2097152',
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await startListening(server, { host: '127.0.0.1', port: 0 });
  server.close();
  await once(server, 'close');
  return port;
}
