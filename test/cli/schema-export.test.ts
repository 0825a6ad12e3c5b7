import { expect, it } from 'vitest';
import { schemaCommand } from '../../src/cli/schema.ts';
import { temporaryFile } from '../config/helpers.ts';
import { serve } from '../support/listen.ts';
import { run } from './run.ts';

it('reads an export in a store as the config says that stores are reached', async () => {
  const asked: [method: string | undefined, path: string | undefined, signer: string | undefined][] = [];
  const url = await serve(({ method, url: path, headers }, answer) => {
    asked.push([method, path, headers.authorization?.match(/Credential=([^/]*)/)?.[1]]);
    answer.writeHead(404).end();
  });
  const s3 = {
    endpoint: url,
    region: 'made-up-1',
    forcePathStyle: true,
    accessKeyId: '${MADE_UP_ID}',
    secretAccessKey: '${MADE_UP_KEY}',
  };
  const sinks = { archive: { type: 'files', path: './archive' } };
  const config = temporaryFile('millrace.yaml', JSON.stringify({ storage: { s3 }, sinks }));
  const args = ['--dialect', 'duckdb', '--load', '--export', 's3://acme/lake', '--config', config];
  const env = { MADE_UP_ID: 'made-up-id', MADE_UP_KEY: 'made-up-key' };
  await expect(run(schemaCommand, args, env)).rejects.toThrow('s3://acme/lake');
  expect(asked.length).toBeGreaterThan(0);
  for (const [, path, signer] of asked)
    expect([path, signer]).toEqual([expect.stringContaining('/acme'), 'made-up-id']);
});

it('removes no rows of a day that no calendar has', async () => {
  const args = ['meals', '--dialect', 'duckdb', '--erase-day', '2026-02-30'];
  await expect(run(schemaCommand, args)).rejects.toThrow('--erase-day 2026-02-30: must be a day');
});
