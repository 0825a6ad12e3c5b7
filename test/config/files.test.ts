import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { resolveConfig } from '../../src/config/load.ts';
import { configKeys } from '../../src/config/keys.ts';
import { CATALOGUE } from '../../src/core/errors.ts';

const ROOT = join(import.meta.dirname, '../..');
const FILES = globSync('config/**/*.yaml', { cwd: ROOT });
const EVENT_HUBS =
  'Endpoint=sb://made-up.servicebus.windows.net/;SharedAccessKeyName=made-up;SharedAccessKey=bWFkZSB1cA==';
const ENV = {
  MILLRACE_SECRET: `whsec_${Buffer.alloc(24).toString('base64')}`,
  MILLRACE_MASTER_KEY: Buffer.alloc(32).toString('base64'),
  WEBHOOK_SECRET: 'made-up secret of this test',
  SERVICE_API_KEY: 'x',
  EVENT_HUBS,
  SERVICES_SECRET: `whsec_${Buffer.alloc(24).toString('base64')}`,
  BILLING_TOKEN: 'made-up',
  KAFKA_PASSWORD: 'made-up',
};

describe('the configs that come with millrace', () => {
  it('include the default and the examples', () => expect(FILES.length).toBeGreaterThanOrEqual(5));

  it.each(FILES)('%s loads without a warning, sinks and all', async (file) => {
    const { warnings, sinks } = await resolveConfig({ file: join(ROOT, file), env: ENV });
    expect(warnings).toEqual([]);
    expect(sinks.size).toBeGreaterThan(0);
  });

  it.each(FILES)('%s names the schema for editors', (file) => {
    const [, path = ''] = /\$schema=(\S+)/.exec(readFileSync(join(ROOT, file), 'utf8')) ?? [];
    expect(join(ROOT, file, '..', path)).toBe(join(ROOT, 'config/schema.json'));
  });
});

describe('what is generated', () => {
  it('is up to date', () => {
    const check = spawnSync(process.execPath, ['config/generate.ts', '--check'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect({ status: check.status, stderr: check.stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('lists every key, variable and error code', () => {
    const [keys, errors] = ['config.yaml', 'errors.md'].map((name) =>
      readFileSync(join(ROOT, 'docs/reference', name), 'utf8'),
    );
    for (const { path, env } of configKeys().scalars)
      expect(keys).toMatch(new RegExp(`^ *(?:# )?${path.at(-1)}:.* # .*; ${env}$`, 'm'));
    const codes = Array.from(errors?.matchAll(/^- `([a-z_]+)`: /gm) ?? [], ([, code]) => code);
    expect(codes).toEqual(expect.arrayContaining(Object.keys(CATALOGUE)));
  });

  it('the reference of the config is a config', async () => {
    const file = join(ROOT, 'docs/reference/config.yaml');
    const { warnings, sinks } = await resolveConfig({ file, env: ENV });
    expect({ warnings, sinks: [...sinks.keys()] }).toEqual({ warnings: [], sinks: ['archive'] });
  });
});
