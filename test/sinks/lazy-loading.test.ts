import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { tempFolder } from './support.ts';

const run = promisify(execFile);
const SRC = join(import.meta.dirname, '../../src');

/** Notes every file that is loaded, of packages too, and writes the list down at the end. */
const RECORDER = `
  import { registerHooks } from 'node:module';
  import { writeFileSync } from 'node:fs';
  const loaded = [];
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  process.on('exit', () => writeFileSync(process.env.LOADED, JSON.stringify(loaded)));`;

/** What a process loads that runs with these arguments. */
async function loadedBy(args: readonly string[]): Promise<string[]> {
  const file = join(tempFolder(), 'loaded.json');
  const recorder = `data:text/javascript,${encodeURIComponent(RECORDER)}`;
  await run(process.execPath, ['--import', recorder, ...args], { env: { ...process.env, LOADED: file } });
  return JSON.parse(readFileSync(file, 'utf8')) as string[];
}

function config(sink: string): string {
  const file = join(tempFolder(), 'millrace.yaml');
  const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
  const routes = `routes: [{ match: "*", to: [out] }]`;
  writeFileSync(file, `signing: { secrets: [${secret}] }\nsinks: { out: ${sink} }\n${routes}\n`);
  return file;
}

const SDKS = /@azure\/|@google-cloud\/|@grpc\/|\/node_modules\/pg/;
const KEY = 'Endpoint=sb://acme.example/;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0';

test.each([
  ['files', 'path: ./archive'],
  ['event-hubs', `hub: events, connectionString: "${KEY}"`],
  ['pubsub', 'project: acme, topic: events'],
  ['postgres', 'connectionString: "postgres://user@127.0.0.1/none"'],
])('a config of %s loads its own code, none of the other types, and no SDK', async (type, options) => {
  const loaded = await loadedBy([
    join(SRC, 'main.ts'),
    'check',
    '--config',
    config(`{ type: ${type}, ${options} }`),
  ]);
  const types = ['files', 'event-hubs', 'pubsub', 'postgres'];
  expect(types.filter((each) => loaded.some((url) => url.includes(`/sinks/${each}/`)))).toEqual([type]);
  expect(loaded.filter((url) => SDKS.test(url))).toEqual([]);
});

test('the code of Azure is loaded when a connection is needed, and identities when one is used', async () => {
  const peer = await startAmqpPeer({ hubs: ['events'] });
  onTestFinished(() => peer.stop());
  const open = `
    import { parseOptions } from '${join(SRC, 'sinks/event-hubs/config.ts')}';
    import { createSink } from '${join(SRC, 'sinks/event-hubs/sink.ts')}';
    const options = parseOptions({ connectionString: '${peer.connectionString}', hub: 'events' });
    const sink = createSink(options, { name: 'hubs', log: console });
    const { signal } = new AbortController();
    await sink.open(signal);
    await sink.close(signal);`;
  // It ends by itself: nothing of the SDK is left that would keep the process alive.
  const opened = await loadedBy(['--input-type=module', '--eval', open]);
  expect(opened.some((url) => url.includes('@azure/event-hubs'))).toBe(true);
  expect(opened.filter((url) => url.includes('@azure/identity'))).toEqual([]);
});
