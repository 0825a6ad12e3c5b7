import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Later ones are not complete on Maven Central. */
const VERSION = '4.2.0';
const CACHE = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');

/** Where the broker's programs and what they need lie, once installed: about 43 MB. */
export const KAFKA_LIBRARIES = join(CACHE, 'millrace', `kafka-${VERSION}`);

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
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`;

if (import.meta.main) install();
