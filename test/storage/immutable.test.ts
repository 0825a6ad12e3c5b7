import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ObjectStore, WHAT_TO_DO } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { connectionStringOf } from '../support/azurite.ts';
import { serve } from '../support/listen.ts';
import { storageSettings } from '../support/object-stores/emulators.ts';
import { bytes } from './contract.ts';

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

const MADE = 'Sat, 21 Nov 2026 08:00:00 GMT';
const SHA256 = createHash('sha256').update('one').digest('hex');

/**
 * A store in which every object holds `one`, and which refuses each write and each removal alike, whatever its condition. Google answers
 * with the reason in JSON (cloud.google.com/storage/docs/json_api/v1/status-codes), Azure with the code in a header
 * (learn.microsoft.com/rest/api/storageservices/blob-service-error-codes).
 */
async function refusing(scheme: string, { status, code, message }: Refusal) {
  const writes: string[] = [];
  const answer = ({ method = '', url = '' }: IncomingMessage, outgoing: ServerResponse): void => {
    if (['PUT', 'POST', 'DELETE'].includes(method)) {
      writes.push(method);
      const error = { code: status, message, errors: [{ domain: 'global', reason: code, message }] };
      const xml = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
      outgoing.writeHead(
        status,
        scheme === 'gs' ? {} : { 'x-ms-error-code': code, 'content-type': 'application/xml' },
      );
      outgoing.end(scheme === 'gs' ? JSON.stringify({ error }) : xml);
    } else if (scheme === 'gs')
      outgoing.end(
        JSON.stringify(
          /\/o\/./.test(url)
            ? { name: 'one', size: '3', updated: MADE, generation: '7', metadata: { sha256: SHA256 } }
            : { kind: 'storage#objects' },
        ),
      );
    else if (url.includes('comp=list'))
      outgoing
        .writeHead(200, { 'content-type': 'application/xml' })
        .end('<?xml version="1.0"?><EnumerationResults><Blobs/><NextMarker/></EnumerationResults>');
    else
      outgoing
        .writeHead(200, {
          etag: '"7"',
          'content-length': '3',
          'last-modified': MADE,
          'x-ms-meta-sha256': SHA256,
        })
        .end();
  };
  const url = await serve((incoming, outgoing) => {
    void buffer(incoming).then(() => answer(incoming, outgoing));
  });
  const given =
    scheme === 'gs' ? { gs: { endpoint: url } } : { azblob: { connectionString: connectionStringOf(url) } };
  const store: ObjectStore = await openStore(
    `${scheme}://acme/archive`,
    storageSettings({ ...given, tries: 3 }),
  );
  onTestFinished(() => store.close());
  return { store, writes };
}

const KEPT = 'cannot be deleted, overwritten or archived until';

describe.each<[scheme: string, status: number, code: string, message: string]>([
  ['gs', 403, 'retentionPolicyNotMet', 'Object is younger than the policy wants'],
  ['gs', 403, 'objectUnderActiveHold', 'Object is under an active hold'],
  // What the service is seen to answer instead: the reason is that of a missing right, and only the text says more.
  ['gs', 403, 'forbidden', `Object 'acme/one' is under active Temporary hold and ${KEPT} hold is removed.`],
  [
    'gs',
    403,
    'forbidden',
    `Object 'acme/one' is subject to bucket's retention policy and ${KEPT} 2031-09-20`,
  ],
  ['azblob', 409, 'BlobImmutableDueToPolicy', 'Not permitted as the blob is immutable due to a policy.'],
  [
    'azblob',
    409,
    'BlobImmutableDueToLegalHold',
    'Not permitted as the blob is immutable due to a legal hold.',
  ],
])('%s, where %i %s keeps what is there: %s', (scheme, status, code, message) => {
  const refusal = { status, code, message };

  test('a probe takes the refusal for what it asked for', async () => {
    const { store } = await refusing(scheme, refusal);
    await expect(store.probe()).resolves.toBeUndefined();
  });

  test('a put finds what is there, which is its own or another', async () => {
    const { store, writes } = await refusing(scheme, refusal);
    expect(await store.putIfAbsent('one', bytes('one'))).toMatchObject({ status: 'written' });
    expect(await store.putIfAbsent('one', bytes('two'))).toEqual({ status: 'taken' });
    expect(writes).toHaveLength(2);
  });

  test('replacing and removing fail with what keeps it, and are not tried again', async () => {
    const { store, writes } = await refusing(scheme, refusal);
    const { version } = (await store.head('one')) ?? { version: '' };
    const kept = { fault: 'immutable', message: expect.stringContaining(refusal.message) as string };
    await expect(store.putIfMatch('one', version, bytes('two'))).rejects.toMatchObject(kept);
    await expect(store.delete('one', version)).rejects.toMatchObject(kept);
    expect(writes).toHaveLength(2);
    expect(WHAT_TO_DO.immutable).toMatch(/policy.*hold/);
  });
});

test.each([
  ['gs', 'forbidden', 'acme@example.iam does not have storage.objects.create access to the object.'],
  ['azblob', 'AuthorizationPermissionMismatch', 'This request is not authorized to perform this operation.'],
])('%s: a probe that may not write says so', async (scheme, code, message) => {
  const { store } = await refusing(scheme, { status: 403, code, message });
  await expect(store.probe()).rejects.toMatchObject({ fault: 'denied' });
});
