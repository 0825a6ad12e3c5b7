import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { lacksKafka } from '../support/kafka/cluster.ts';
import { KAFKA_CLASSES, KAFKA_LIBRARIES } from '../support/kafka/java.ts';
import { millrace, millraceProcess } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';

const LACK = lacksKafka();

const DEMO = ['demo', '--fleet', '2'];

/** Ids in all files of records below a folder, as any reader of lines would find them. */
function idsBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ndjson|ndjson\.gz|part)$/.test(name))
    .map((name) => [name, readFileSync(join(folder, name))] as const)
    .map(([name, bytes]) => (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString())
    .flatMap((text) => text.split('\n').slice(0, -1))
    .map((line) => (JSON.parse(line) as { id: string }).id);
}

describe.skipIf(LACK !== null)(`demo --fleet${skipped(LACK)}`, () => {
  // A broker, two replicas, and the end of a session of 6 s.
  test('2: one of two replicas is killed under load, and nothing is lost', async () => {
    const cwd = await temporaryFolder();
    const env = {
      TMPDIR: cwd,
      KAFKA_HOME: KAFKA_LIBRARIES,
      // Half of what Java takes to start is to read classes.
      JAVA_TOOL_OPTIONS: `-XX:SharedArchiveFile=${KAFKA_CLASSES}`,
    };
    const args = [...DEMO, '--events', '300', '--json'];
    const { code, stdout, stderr } = await millraceProcess(args, { cwd, env });
    expect({ code }, stderr).toEqual({ code: 0 });
    const { folder, twice, ...counts } = JSON.parse(stdout) as { folder: string; twice: number };
    expect(counts).toMatchObject({ ok: true, accepted: 300, delivered: 300, users: 50, problems: [] });
    const archives = ['replica-1', 'replica-2'].map((name) => idsBelow(join(folder, name, 'archive')));
    expect(archives.flat()).toHaveLength(300 + twice);
    expect(new Set(archives.flat()).size).toBe(300);
    // The other may have been killed before it had delivered anything.
    expect(archives[1]?.length).toBeGreaterThan(0);
    const pids = Array.from(stderr.matchAll(/process (\d+)/g), ([, pid]) => Number(pid));
    expect(pids).toHaveLength(2);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    const [broker] = /127\.0\.0\.1:\d+/.exec(stderr) ?? [];
    await expect(fetch(`http://${broker}`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });
});

test('demo --fleet: without Kafka it says what to install; what does not go together is named', async () => {
  const cases: readonly [readonly string[], string][] = [
    [[], 'https://kafka.apache.org/downloads'],
    [['--kafka', '.'], 'no release of Apache Kafka'],
    [['--brokers', 'nowhere'], '--brokers nowhere: must be host:port'],
    [['--brokers', 'a:1', '--kafka', '.'], '--kafka'],
    [['--events', '10'], 'at least 100'],
    [['--store', 's3'], '--store'],
  ];
  const cwd = await temporaryFolder();
  for (const [args, said] of cases) {
    const { code, stdout, stderr } = await millrace([...DEMO, ...args], { cwd, env: { KAFKA_HOME: '' } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(said);
  }
});
