import { delimiter, dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millraceProcess } from '../support/millrace.ts';
import { MOTO_PYTHON } from '../support/object-stores/install.ts';
import { lacksMoto, startMoto } from '../support/object-stores/moto.ts';
import { skipped } from '../support/requirements.ts';

const LACK = lacksMoto();
const PATH = [...(MOTO_PYTHON.includes('/') ? [dirname(MOTO_PYTHON)] : []), process.env['PATH']].join(
  delimiter,
);

async function demo(store: string, env: Readonly<Record<string, string>>) {
  const cwd = await temporaryFolder();
  const args = ['demo', '--events', '100', '--json', '--store', store];
  const ended = await millraceProcess(args, { cwd, env: { TMPDIR: cwd, ...env } });
  return { ...ended, last: ended.stdout.trimEnd().split('\n').at(-1) ?? '' };
}

/** What has to add up, from what was sent on. */
function check(last: string): string {
  const { history, onward, ...counts } = JSON.parse(last) as {
    history: { events: number };
    onward: { replayed: number; rows: number; table: string };
  };
  expect(counts).toMatchObject({ ok: true, accepted: 100, delivered: 100, problems: [] });
  expect(history.events).toBeGreaterThan(0);
  const all = 100 + history.events;
  expect(onward).toMatchObject({ replayed: all, rows: all });
  return onward.table;
}

describe.skipIf(LACK !== null)(`demo --store${skipped(LACK)}`, () => {
  test('s3: from the receiver to the rows of a table, in a stand-in that is gone at the end', async () => {
    const { code, last, stderr } = await demo('s3', { PATH });
    expect({ code }, `stderr: ${stderr}`).toEqual({ code: 0 });
    check(last);
    const [moto] = /http:\/\/127\.0\.0\.1:\d+(?=\n)/.exec(stderr) ?? [];
    await expect(fetch(String(moto))).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });

  test('a URL: the store that the environment names keeps the objects, below a new prefix', async () => {
    const moto = await startMoto();
    try {
      const bucket = await moto.bucket('own');
      const access = {
        AWS_ACCESS_KEY_ID: 'made-up',
        AWS_SECRET_ACCESS_KEY: 'made-up',
        AWS_REGION: 'us-east-1',
      };
      const env = { AWS_ENDPOINT_URL_S3: moto.url, ...access };
      const { code, last, stderr } = await demo(`${bucket}/trial`, env);
      expect({ code }, `stderr: ${stderr}`).toEqual({ code: 0 });
      const table = check(last);
      expect(table).toMatch(/^s3:\/\/own\/trial\/demo-[0-9a-f]+\/export\/events$/);
      const listing = await (await fetch(`${moto.url}/own?list-type=2&prefix=trial/`)).text();
      expect(listing).toContain(`${table.slice('s3://own/'.length)}/_delta_log/`);
      const lost = await demo('s3://nowhere', env);
      expect(lost).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('NoSuchBucket') });
    } finally {
      await moto.stop();
    }
  });
});

test('demo --store: without a stand-in it says how to get one; a folder is no store', async () => {
  const without = await demo('s3', { PATH: await temporaryFolder() });
  expect(without).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining("pip install 'moto[server]'"),
  });
  expect(await demo('./here', {})).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('--store'),
  });
});
