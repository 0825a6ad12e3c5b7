import { describe, expect, it } from 'vitest';
import { BASE, failure, parse } from './helpers.ts';

function written(key: string): string {
  return `storage: { s3: { accessKeyId: "\${ID}", secretAccessKey: ${key} } }\n${BASE}`;
}

describe('storage', () => {
  it('is plain data, which threads can be given', () => {
    const text = `storage: { partBytes: 16MiB, s3: { endpoint: "http://127.0.0.1:9000", forcePathStyle: true } }\n${BASE}`;
    const { storage } = parse(text).config;
    expect(storage).toMatchObject({ timeout: 60_000, tries: 5, partBytes: 16 * 1024 * 1024 });
    expect(storage.s3).toMatchObject({
      endpoint: 'http://127.0.0.1:9000',
      region: null,
      forcePathStyle: true,
    });
    expect(structuredClone(storage)).toEqual(storage);
  });

  it('takes keys from the environment, and not from the file itself', () => {
    const { storage } = parse(written('"${KEY}"'), { ID: 'made-up-id', KEY: 'made-up-key' }).config;
    expect(storage.s3).toMatchObject({ accessKeyId: 'made-up-id', secretAccessKey: 'made-up-key' });
    const { lines } = failure(written('made-up-key'), { ID: 'made-up-id' });
    expect(lines).toEqual([
      expect.stringMatching(/storage\.s3\.secretAccessKey: must come from the environment/),
    ]);
    expect(lines.join()).not.toContain('made-up-key');
  });

  it('wants both halves of a key', () => {
    const { lines } = failure(`storage: { s3: { accessKeyId: "\${ID}" } }\n${BASE}`, { ID: 'made-up-id' });
    expect(lines).toEqual([
      expect.stringMatching(/storage\.s3\.secretAccessKey: must be set beside storage\.s3\.accessKeyId/),
    ]);
  });

  it.each([
    ['s3: { sessionToken: "${A}" }', ['s3.accessKeyId: must be set beside storage.s3.sessionToken']],
    [
      'azblob: { account: acme, accountKey: "${A}", sasToken: "${A}" }',
      ['azblob.sasToken: must be left out beside storage.azblob.accountKey'],
    ],
    [
      'azblob: { account: acme, connectionString: "${A}", managedIdentityClientId: made-up }',
      [
        'azblob.managedIdentityClientId: must be left out beside storage.azblob.connectionString',
        'azblob.account: must be left out beside storage.azblob.connectionString',
      ],
    ],
  ])('refuses what would not be used: %s', (text, wanted) => {
    const { lines } = failure(`storage: { ${text} }\n${BASE}`, { A: 'made-up' });
    expect(lines).toEqual(wanted.map((each) => expect.stringContaining(`storage.${each}`) as string));
  });

  it('suggests the key that was meant', () => {
    const { lines } = failure(`storage: { s3: { endpont: "http://127.0.0.1:9000" } }\n${BASE}`);
    expect(lines).toEqual([expect.stringMatching(/endpont.*endpoint/)]);
  });
});
