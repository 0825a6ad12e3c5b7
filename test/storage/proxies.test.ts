import type { RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import type { ObjectStore } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { connectionStringOf } from '../support/azurite.ts';
import { serve } from '../support/listen.ts';
import { storageSettings } from '../support/object-stores/emulators.ts';
import { keysOf, textOf } from './contract.ts';

const KEYS = { region: 'us-east-1', forcePathStyle: true, accessKeyId: 'made', secretAccessKey: 'up' };
const SETTINGS = {
  s3: (endpoint: string) => ({ s3: { endpoint, ...KEYS } }),
  azblob: (endpoint: string) => ({ azblob: { connectionString: connectionStringOf(endpoint) } }),
  gs: (endpoint: string) => ({ gs: { endpoint } }),
};

const PAGE = ['a page to sign in', 'text/html', '<html><body>sign in</body></html>'] as const;
const NOTHING = ['nothing', 'application/xml', ''] as const;
const OTHER = ['another document', 'application/xml', '<Other><Name>bucket</Name></Other>'] as const;
const JSON_PAGE = ['another document', 'application/json', '{"detail":"sign in"}'] as const;
const CUT_SHORT = [
  'a list with more pages that does not say where',
  'application/xml',
  `<ListBucketResult><Name>bucket</Name><IsTruncated>true</IsTruncated><Contents><Key>place/one</Key><Size>1</Size><ETag>"e"</ETag></Contents></ListBucketResult>`,
] as const;

// Read as an empty list, it would mean that an archive holds nothing of a user.
test.each([
  ['s3', ...PAGE],
  ['s3', ...NOTHING],
  ['s3', ...OTHER],
  ['s3', ...CUT_SHORT],
  ['azblob', ...PAGE],
  ['azblob', ...NOTHING],
  ['azblob', ...OTHER],
  ['gs', ...PAGE],
  ['gs', ...NOTHING],
  ['gs', ...JSON_PAGE],
] as const)('%s: a list that is answered with %s is no empty one', async (scheme, _, type, body) => {
  const store = await storeThat(scheme, (request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  await expect(keysOf(store, '')).rejects.toMatchObject({ name: 'StorageError' });
  // Nor is it one of what is kept beside the object.
  await expect(store.purge('one', AbortSignal.timeout(10_000))).rejects.toMatchObject({
    name: 'StorageError',
  });
});

const MADE = 'Sat, 21 Nov 2026 08:00:00 GMT';

// Read as 0, a length would mean an empty object, and a time one of 1970: an old leftover, the lease of a dead process.
test.each(['s3', 'azblob', 'gs'] as const)(
  '%s: an object without a length is no empty one',
  async (scheme) => {
    const store = await storeThat(scheme, (request, response) => {
      request.resume();
      response.writeHead(200, { etag: '"e"', 'x-goog-generation': '7', 'last-modified': MADE });
      response.write(
        scheme === 'gs' ? JSON.stringify({ name: 'k', generation: '7', updated: MADE }) : 'made up',
      );
      response.end();
    });
    const message = expect.stringMatching(/without a length|valid content length/) as string;
    const fault = { fault: 'unreachable', message };
    await expect(textOf(store, 'k')).rejects.toMatchObject(fault);
    await expect(store.head('k')).rejects.toMatchObject(fault);
  },
);

test.each(['s3', 'azblob', 'gs'] as const)('%s: an object without a time is no old one', async (scheme) => {
  const store = await storeThat(scheme, (request, response) => {
    request.resume();
    const text = JSON.stringify({ name: 'k', generation: '7', size: '9' });
    response.writeHead(200, { etag: '"e"', ...(scheme === 'gs' ? {} : { 'content-length': '9' }) });
    response.end(scheme === 'gs' ? text : undefined);
  });
  const message = expect.stringContaining('without a time of change') as string;
  await expect(store.head('k')).rejects.toMatchObject({ fault: 'unreachable', message });
});

// As proxies and gateways answer: nothing in it says what is wrong.
test.each([
  ['s3', 401],
  ['azblob', 401],
  ['gs', 401],
  ['azblob', 403],
] as const)('%s: an answer %i without a word is called by its status', async (scheme, status) => {
  const store = await storeThat(scheme, (request, response) => {
    request.resume();
    response.writeHead(status).end();
  });
  for (const asked of [
    () => store.head('key'),
    () => keysOf(store, ''),
    () => store.putIfAbsent('key', { bytes: Buffer.from('made up') }),
  ])
    await expect(asked()).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining(String(status)) as string,
    });
});

const LIST =
  '<ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>';
const errorOf = (code: string): string => `<Error><Code>${code}</Code><Message>made up</Message></Error>`;

// Each error then says that the SDK has corrected its clock, also those that have nothing to do with it.
test.each([0, -2, 26])('s3: errors mean the same where the clocks are %i hours apart', async (hours) => {
  let denied = '';
  const answer: RequestListener = (request, response) => {
    request.resume();
    response.setHeader('date', new Date(Date.now() + hours * 3_600_000).toUTCString());
    response.setHeader('content-type', 'application/xml');
    const { method, url = '' } = request;
    if (denied !== '') response.writeHead(403).end(errorOf(denied));
    else if (method === 'PUT') response.writeHead(412).end(errorOf('PreconditionFailed'));
    else if (url.includes('list-type')) response.end(LIST);
    else if (url.includes('missing')) response.writeHead(404).end();
    else response.writeHead(200, { etag: '"e"', 'content-length': '9', 'last-modified': MADE }).end();
  };
  const store = await storeThat('s3', answer, 2);
  const body = { bytes: Buffer.from('made up') };
  expect(await store.head('missing')).toBeNull();
  expect(await store.putIfAbsent('one', body)).toEqual({ status: 'taken' });
  expect(await store.putIfMatch('one', '"other"', body)).toMatchObject({ status: 'changed' });
  denied = 'AccessDenied';
  await expect(store.head('one')).rejects.toMatchObject({ name: 'StorageError' });
  await expect(store.putIfAbsent('one', body)).rejects.toMatchObject({ fault: 'denied' });
  // What the clock may have made wrong is signed again by the corrected one.
  denied = 'RequestTimeTooSkewed';
  await expect(store.putIfAbsent('one', body)).rejects.toMatchObject({ fault: 'busy' });
});

/** A store whose service answers so, in so many tries. */
async function storeThat(
  scheme: keyof typeof SETTINGS,
  answer: RequestListener,
  tries = 1,
): Promise<ObjectStore> {
  const settings = storageSettings({ ...SETTINGS[scheme](await serve(answer)), tries });
  const store = await openStore(`${scheme}://bucket/place`, settings);
  onTestFinished(() => store.close());
  return store;
}
