import { cp } from 'node:fs/promises';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { temporaryFolder } from '../support/folders.ts';
import { parseConfig } from '../../src/config/load.ts';
import { anchorsOf, blocksOf, localLinksOf } from '../support/markdown.ts';
import { ROOT } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import { shellPlace } from '../support/shell.ts';

const PAGES = readdirSync(join(ROOT, 'docs')).flatMap((name) =>
  name.endsWith('.md') ? [`docs/${name}`] : [],
);
const BLOCKS = PAGES.flatMap(blocksOf);
const lack = firstLack(...['bash', 'curl', 'openssl'].map(lacksProgram));

/** Runs all blocks of one guide as one session, beside a copy of the project's configs. */
async function followGuide(name: string, env: Readonly<Record<string, string>> = {}): Promise<Followed> {
  const blocks = BLOCKS.filter(({ info }) => info[0] === 'sh' && info[1] === 'run' && info[2] === name);
  expect(blocks, `blocks "sh run ${name}"`).not.toEqual([]);
  const place = await shellPlace(await temporaryFolder());
  await cp(join(ROOT, 'config'), join(place.folder, 'config'), { recursive: true });
  const output = await place.run(blocks.map(({ text }) => text).join('\n'), env);
  return { output, folder: place.folder };
}

interface Followed {
  readonly output: string;
  readonly folder: string;
}

describe.skipIf(lack !== null)(`the guides, followed step by step${skipped(lack)}`, () => {
  test('from zero to Event Hubs', async () => {
    const peer = await startAmqpPeer({ hubs: ['events', 'labtest-events', 'wearable-events'] });
    onTestFinished(() => peer.stop());
    const { output } = await followGuide('event-hubs', { EVENT_HUBS: peer.connectionString });
    expect(output.match(/"http":202/g)).toHaveLength(5);
    await peer.received('labtest-events', 5);
    expect(peer.taken('events').count).toBe(0);
  });

  test('to BigQuery and to Snowflake, as far as no account is needed', async () => {
    const { folder } = await followGuide('warehouse');
    const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
    expect(text('meals.sql')).toContain('CREATE TABLE IF NOT EXISTS `meals`');
    expect(text('meals.sql')).toContain('VIEW `meal_items_latest`');
    for (const table of ['meals', 'meal_items'])
      expect(text('loaded.files')).toMatch(
        new RegExp(`^${table} ${table}/dt=[\\d-]{10}/part-\\d+\\.ndjson\\.gz$`, 'm'),
      );
    expect(text('loaded.step')).toBe('1\n');
    expect(text('snowflake-load.sql')).toContain('FROM @health/meals/meals/');
  });

  test('from webhooks to ETL pipelines', async () => {
    const { output } = await followGuide('etl', {
      EVENT_HUBS: 'Endpoint=sb://made.up;SharedAccessKeyName=a;SharedAccessKey=b',
    });
    expect(output).toContain('wearables:');
  });

  test('rotating a secret', async () => {
    const { output } = await followGuide('rotate');
    expect(output.match(/"http":202/g)).toHaveLength(2);
  });

  test('a start that fails is shown, and no guide waits for it', async () => {
    const waits = BLOCKS.flatMap(({ text }) =>
      text.split('\n').filter((line) => line.startsWith('until curl ')),
    );
    expect(new Set(waits).size).toBe(1);
    const { run } = await shellPlace(await temporaryFolder());
    const output = await run(`millrace serve --config none.yaml 2> millrace.log &\n${waits[0]}`);
    expect(output).toContain('Config file cannot be read');
  });

  test('changing routes', async () => {
    const { output, folder } = await followGuide('routes');
    expect(output).toMatch(/moves \d+\.\d % of 12 events from archive to labs/);
    expect(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'))).toMatchObject({ events: 12 });
    expect((await readBack(join(folder, 'data/archive'))).size).toBe(12);
  });
});

test('every guide that can run is followed here', () => {
  const named = new Set(BLOCKS.filter(({ info }) => info[1] === 'run').map(({ info }) => info[2]));
  expect(named).toEqual(new Set(['event-hubs', 'warehouse', 'etl', 'rotate', 'routes']));
});

test.for(['README.md', 'docs/sinks.md', 'docs/write-a-sink.md'])('every config of %s can be used', (page) => {
  const configs = blocksOf(page).filter(({ info, text }) => info[0] === 'yaml' && text.includes('sinks:'));
  for (const { text } of configs) {
    const whole = text.includes('signing:') ? text : `signing: { secrets: ['\${MILLRACE_SECRET}'] }\n${text}`;
    const { config } = parseConfig(whole, { file: page, env: {}, lenient: true });
    expect(Object.keys(config.sinks).length, text).toBeGreaterThan(0);
  }
  expect(configs.length).toBeGreaterThan(0);
});

test.for([
  ...PAGES,
  'README.md',
  'src/README.md',
  'deploy/README.md',
  'docs/reference/errors.md',
  'docs/reference/tables/README.md',
  '.github/CONTRIBUTING.md',
  '.github/SECURITY.md',
])('every link of %s leads somewhere', (file) => {
  const lost = localLinksOf(file).filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? file : normalize(join(dirname(file), path));
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).has(anchor);
  });
  expect(lost).toEqual([]);
});
