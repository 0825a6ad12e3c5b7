import { createVerify, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import { signIn } from '../../src/storage/gs/client.ts';
import { temporaryFolder } from '../support/folders.ts';
import { serve } from '../support/listen.ts';

const SCOPE = 'https://www.googleapis.com/auth/devstorage.full_control';

afterEach(() => void vi.restoreAllMocks());

async function keyFile(content: object | string): Promise<string> {
  const path = join(await temporaryFolder(), 'key.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** What is printed from now on. */
function printed(): () => readonly unknown[][] {
  const spies = (['warn', 'error', 'log', 'info'] as const).map((name) => vi.spyOn(console, name));
  return () => spies.flatMap(({ mock }) => mock.calls);
}

test('a service account signs for itself, and nothing is printed', async () => {
  const lines = printed();
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const email = 'made-up@acme.iam.gserviceaccount.com';
  const path = await keyFile({ type: 'service_account', client_email: email, private_key: privateKey });
  const client = (await signIn(path)) as Awaited<ReturnType<typeof signIn>> & {
    transporter: { request: (asked: { data?: unknown }) => Promise<unknown> };
  };
  let asked: unknown;
  vi.spyOn(client.transporter, 'request').mockImplementation((request) => {
    asked = request.data;
    return Promise.resolve({ data: { access_token: 'made-up', expires_in: 3600 } });
  });
  const headers = await client.getRequestHeaders();
  expect(headers.get('authorization')).toBe('Bearer made-up');
  const [head = '', claims = '', signature = ''] = String(
    new URLSearchParams(asked as URLSearchParams).get('assertion'),
  ).split('.');
  expect(createVerify('sha256').update(`${head}.${claims}`).verify(publicKey, signature, 'base64url')).toBe(
    true,
  );
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ iss: email, scope: SCOPE });
  expect(lines()).toEqual([]);
});

test('a workload identity exchanges its token, and nothing is printed', async () => {
  const lines = printed();
  let asked = new URLSearchParams();
  const url = await serve((incoming, outgoing) => {
    void text(incoming).then((body) => {
      asked = new URLSearchParams(body);
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify({ access_token: 'made-up', expires_in: 3600, token_type: 'Bearer' }));
    });
  });
  const path = await keyFile({
    type: 'external_account',
    audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/made/providers/up',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${url}/token`,
    credential_source: { file: await keyFile('of the pod') },
  });
  expect((await (await signIn(path)).getRequestHeaders()).get('authorization')).toBe('Bearer made-up');
  expect([asked.get('subject_token'), asked.get('scope')]).toEqual(['of the pod', SCOPE]);
  expect(lines()).toEqual([]);
});

test('a file that is not there, or is none of credentials, is said by its name', async () => {
  await expect(signIn('/nowhere/key.json')).rejects.toThrow('/nowhere/key.json');
  await expect(signIn(await keyFile('made-up-secret'))).rejects.toThrow(/key\.json holds no credentials/);
  await expect(signIn(await keyFile('made-up-secret'))).rejects.not.toThrow('made-up-secret');
});
