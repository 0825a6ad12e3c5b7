import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { connectionStringOf } from '../support/azurite.ts';
import { listen } from '../support/listen.ts';
import { storageSettings } from '../support/object-stores/emulators.ts';

const KEYS = { region: 'us-east-1', forcePathStyle: true, accessKeyId: 'made', secretAccessKey: 'up' };

// As proxies and gateways answer: nothing in it says what is wrong.
test.each([
  ['s3', 401, (endpoint: string) => ({ s3: { endpoint, ...KEYS } })],
  ['azblob', 401, (endpoint: string) => ({ azblob: { connectionString: connectionStringOf(endpoint) } })],
  ['gs', 401, (endpoint: string) => ({ gs: { endpoint } })],
  ['azblob', 403, (endpoint: string) => ({ azblob: { connectionString: connectionStringOf(endpoint) } })],
] as const)('%s: an answer %i without a word is called by its status', async (scheme, status, settings) => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status).end();
  });
  const endpoint = `http://127.0.0.1:${await listen(server)}`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const store = await openStore(`${scheme}://bucket/place`, storageSettings(settings(endpoint)));
  onTestFinished(() => store.close());
  const list = async (): Promise<void> => {
    for await (const _ of store.list('')) throw new Error('there is nothing');
  };
  for (const asked of [
    () => store.head('key'),
    list,
    () => store.putIfAbsent('key', { bytes: Buffer.from('made up') }),
  ])
    await expect(asked()).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining(String(status)) as string,
    });
});
