import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/storage/open.ts';
import { serve } from '../support/listen.ts';
import { storageSettings } from '../support/object-stores/emulators.ts';

const KEYS = { region: 'us-east-1', forcePathStyle: true, accessKeyId: 'made', secretAccessKey: 'up' };
const LIST =
  '<ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>';
const errorOf = (code: string): string => `<Error><Code>${code}</Code><Message>made up</Message></Error>`;

// Each error then says that the SDK has corrected its clock, also those that have nothing to do with it.
test.each([0, -2, 26])('s3: errors mean the same where the clocks are %i hours apart', async (hours) => {
  let denied = '';
  const endpoint = await serve((request, response) => {
    request.resume();
    response.setHeader('date', new Date(Date.now() + hours * 3_600_000).toUTCString());
    response.setHeader('content-type', 'application/xml');
    const { method, url = '' } = request;
    if (denied !== '') response.writeHead(403).end(errorOf(denied));
    else if (method === 'PUT') response.writeHead(412).end(errorOf('PreconditionFailed'));
    else if (url.includes('list-type')) response.end(LIST);
    else if (url.includes('missing')) response.writeHead(404).end();
    else response.writeHead(200, { etag: '"e"', 'content-length': '9' }).end();
  });
  const store = await openStore(
    's3://bucket/place',
    storageSettings({ s3: { endpoint, ...KEYS }, tries: 2 }),
  );
  onTestFinished(() => store.close());
  expect(await store.head('missing')).toBeNull();
  expect(await store.putIfAbsent('one', { bytes: Buffer.from('made up') })).toEqual({ status: 'taken' });
  expect(await store.putIfMatch('one', '"other"', { bytes: Buffer.from('made up') })).toMatchObject({
    status: 'changed',
  });
  denied = 'AccessDenied';
  await expect(store.head('one')).rejects.toMatchObject({ name: 'StorageError' });
  await expect(store.putIfAbsent('one', { bytes: Buffer.from('x') })).rejects.toMatchObject({
    fault: 'denied',
  });
  // What the clock may have made wrong is signed again by the corrected one.
  denied = 'RequestTimeTooSkewed';
  await expect(store.putIfAbsent('one', { bytes: Buffer.from('x') })).rejects.toMatchObject({
    fault: 'busy',
  });
});
