import { expect, test } from 'vitest';
import { Command } from 'commander';
import type { Io } from '../../src/cli/io.ts';
import { storageOf } from '../../src/cli/places.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { run } from './run.ts';

test('a store is reached as the config at the usual place says, and a folder needs no config', async () => {
  const endpoint = 'http://127.0.0.1:9000';
  const config = writeConfig(await temporaryFolder(), {
    sinks: { out: { type: 'stdout' } },
    storage: { s3: { endpoint } },
  });
  const expected = { s3: { endpoint } };
  expect(await asked({ MILLRACE_CONFIG: config }, {}, 's3://made-up/archive')).toMatchObject(expected);
  expect(await asked({}, { config }, 's3://made-up/archive')).toMatchObject(expected);
  expect(await asked({ MILLRACE_CONFIG: config }, {}, '/made-up/archive')).toBeNull();
});

/** What a command finds that is given a place. */
async function asked(
  env: Record<string, string>,
  flags: { config?: string },
  place: string,
): Promise<unknown> {
  let settings: unknown;
  await run(
    (io: Io) => {
      settings = storageOf(flags, io, [undefined, place]);
      return Promise.resolve(new Command().action(() => undefined));
    },
    [],
    env,
  );
  return settings;
}
