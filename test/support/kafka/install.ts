import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { KafkaCluster } from './cluster.ts';
import { KAFKA_CLASSES, KAFKA_LIBRARIES, KAFKA_VERSION } from './java.ts';

/** Fetches Apache Kafka from Maven Central, unless it is there. */
function install(): void {
  if (existsSync(KAFKA_LIBRARIES)) return;
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kafka-'));
  try {
    writeFileSync(join(folder, 'pom.xml'), POM);
    const fetch = [
      '-q',
      '-B',
      'dependency:copy-dependencies',
      '-DincludeScope=runtime',
      '-DoutputDirectory=libs',
    ];
    const { status } = spawnSync('mvn', fetch, { cwd: folder, stdio: 'inherit' });
    if (status !== 0) throw new Error(`mvn ended with ${status}`);
    mkdirSync(dirname(KAFKA_LIBRARIES), { recursive: true });
    renameSync(join(folder, 'libs'), KAFKA_LIBRARIES);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${KAFKA_VERSION}</version>
    </dependency>
  </dependencies>
</project>
`;

/** Has a broker leave the classes it has read, unless one did. */
async function keepClasses(): Promise<void> {
  if (existsSync(KAFKA_CLASSES)) return;
  const own = `${KAFKA_CLASSES}-${process.pid}`;
  const cluster = await KafkaCluster.start({ java: [`-XX:ArchiveClassesAtExit=${own}`] });
  await Promise.all(cluster.brokers.map((broker) => broker.end()));
  await cluster.stop();
  if (existsSync(own)) renameSync(own, KAFKA_CLASSES);
}

install();
await keepClasses();
