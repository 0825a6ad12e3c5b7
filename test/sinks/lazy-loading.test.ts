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
async function loadedBy(args: readonly string[]): Promise<(part: string) => boolean> {
  const file = join(tempFolder(), 'loaded.json');
  const recorder = `data:text/javascript,${encodeURIComponent(RECORDER)}`;
  await run(process.execPath, ['--import', recorder, ...args], { env: { ...process.env, LOADED: file } });
  const loaded = JSON.parse(readFileSync(file, 'utf8')) as string[];
  return (part) => loaded.some((url) => url.includes(part));
}

function config(sink: string): string {
  const file = join(tempFolder(), 'millrace.yaml');
  const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
  const routes = `routes: [{ match: "*", to: [out] }]`;
  writeFileSync(file, `signing: { secrets: [${secret}] }\nsinks: { out: ${sink} }\n${routes}\n`);
  return file;
}

const hub = (connectionString: string): string =>
  `{ type: event-hubs, hub: events, connectionString: "${connectionString}" }`;
const check = (file: string): Promise<(part: string) => boolean> =>
  loadedBy([join(SRC, 'main.ts'), 'check', '--config', file]);

test('a config without Event Hubs loads no Azure code', async () => {
  const loaded = await check(config('{ type: files, path: ./archive }'));
  expect(loaded('/sinks/files/')).toBe(true);
  expect(loaded('/event-hubs/')).toBe(false);
  expect(loaded('@azure/')).toBe(false);
});

test('a config with Event Hubs loads Azure code when a connection is needed, and identities when one is used', async () => {
  const peer = await startAmqpPeer({ hubs: ['events'] });
  onTestFinished(() => peer.stop());
  const checked = await check(config(hub(peer.connectionString)));
  expect(checked('/sinks/event-hubs/')).toBe(true);
  expect(checked('@azure/')).toBe(false);
  const open = `
    import { createSink, parseOptions } from '${join(SRC, 'sinks/event-hubs/sink.ts')}';
    const options = parseOptions({ connectionString: '${peer.connectionString}', hub: 'events' });
    const sink = createSink(options, { name: 'hubs', log: console });
    const { signal } = new AbortController();
    await sink.open(signal);
    await sink.close(signal);`;
  // It ends by itself: nothing of the SDK is left that would keep the process alive.
  const opened = await loadedBy(['--input-type=module', '--eval', open]);
  expect(opened('@azure/event-hubs')).toBe(true);
  expect(opened('@azure/identity')).toBe(false);
});

test('a config without Pub/Sub loads no Google code', async () => {
  const loaded = await check(config('{ type: files, path: ./archive }'));
  expect(loaded('/pubsub/')).toBe(false);
  expect(loaded('@google-cloud/')).toBe(false);
  expect(loaded('@grpc/')).toBe(false);
});

test('a config with Pub/Sub loads Google code when a connection is needed', async () => {
  const checked = await check(config('{ type: pubsub, project: acme, topic: events }'));
  expect(checked('/sinks/pubsub/')).toBe(true);
  expect(checked('@google-cloud/')).toBe(false);
});

test('a config with PostgreSQL loads its driver when a connection is needed, and other configs never', async () => {
  expect((await check(config('{ type: files, path: ./archive }')))('/sinks/postgres/')).toBe(false);
  const checked = await check(
    config('{ type: postgres, connectionString: "postgres://nobody@127.0.0.1/none" }'),
  );
  expect(checked('/sinks/postgres/')).toBe(true);
  expect(checked('/node_modules/pg')).toBe(false);
});
