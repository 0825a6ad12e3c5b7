import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { PutBucketVersioningCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import type { VerifyReport } from '../../src/archive/report.ts';
import { openSigner } from '../../src/privacy/proof/open.ts';
import { openStore } from '../../src/storage/open.ts';
import { makeErasable } from '../privacy/erase/objects-support.ts';
import { secretOf, userId } from '../privacy/erase/support.ts';
import { records } from '../sinks/support.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { storageSettings, type Emulator } from '../support/object-stores/emulators.ts';
import { startFaultProxy } from '../support/object-stores/fault-proxy.ts';
import { lacksMoto, motoClient, startMoto } from '../support/object-stores/moto.ts';
import { firstLack, lacksWorking, skipped } from '../support/requirements.ts';
import { jsonLines } from '../support/json-lines.ts';
import { chained, keysIn, put, segmentName, WRITERS } from './store-archive.ts';

const ORACLE = fileURLToPath(new URL('bucket-oracle.py', import.meta.url));
const PYTHON = process.env['MILLRACE_TEST_PYTHON'] ?? 'python3';

interface Look {
  readonly problems: readonly string[];
  readonly files: number;
  readonly records: number;
  readonly found: readonly string[];
}

/** What lies in a bucket, by a program that shares no code with ours. */
function look(emulator: Emulator, url: string, ...needles: string[]): Look {
  const { host: bucket, pathname } = new URL(url);
  const args = [ORACLE, emulator.url, bucket, decodeURIComponent(pathname.slice(1)), ...needles];
  return JSON.parse(execFileSync(PYTHON, args, { encoding: 'utf8' })) as Look;
}

/** Through a proxy, say. */
function reach(endpoint: string): void {
  vi.stubEnv('AWS_ENDPOINT_URL_S3', endpoint);
}

const lack = firstLack(
  lacksMoto(),
  lacksWorking('boto3 (pip install boto3)', PYTHON, ['-c', 'import boto3']),
);

describe.skipIf(lack !== null)(`an archive in S3, by the commands${skipped(lack)}`, () => {
  let emulator: Emulator;
  beforeAll(async () => {
    emulator = await startMoto();
  });
  afterAll(() => emulator.stop());
  let buckets = 0;
  const base = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  afterAll(() => rmSync(base, { recursive: true, force: true }));

  beforeEach(() => {
    reach(emulator.url);
    vi.stubEnv('AWS_REGION', 'us-east-1');
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  });
  afterEach(() => vi.unstubAllEnvs());

  async function setting() {
    const folder = mkdtempSync(join(base, 'setting-'));
    const url = `${await emulator.bucket(`archive-${(buckets += 1)}`)}/in/a prefix`;
    const client = motoClient(emulator);
    const VersioningConfiguration = { Status: 'Enabled' } as const;
    await client.send(new PutBucketVersioningCommand({ Bucket: new URL(url).host, VersioningConfiguration }));
    onTestFinished(() => client.destroy());
    const store = await openStore(url, storageSettings(emulator.settings()));
    const signer = await openSigner(join(folder, 'erasure/manifest.key'));
    await makeErasable(store, join(folder, 'made'), { signer });
    const config = writeConfig(folder, {
      erasure: { path: join(folder, 'erasure'), folders: [url] },
      sinks: { copy: { type: 'files', path: join(folder, 'copy') } },
      routes: [{ match: '*', to: ['copy'] }],
    });
    const verify = () => millrace(['archive', 'verify', url, '--config', config, '--json']);
    return { folder, url, store, config, verify, client };
  }

  test('verify, erase, verify: no version of any object has the user, and the bucket holds what the manifest says', async () => {
    const { url, store, config, verify, folder } = await setting();
    const names = [userId(1), secretOf(1)];
    const before = look(emulator, url, ...names);
    expect(before).toMatchObject({ problems: [], records: 16 });
    expect(before.found.length).toBeGreaterThan(1);
    expect(await verify()).toMatchObject({ code: 0 });
    const erased = await millrace(['erase', userId(1), '--now', '--config', config, '--json']);
    expect(erased).toMatchObject({ code: 0 });
    expect(look(emulator, url, ...names)).toMatchObject({ problems: [], records: 12, found: [] });
    expect(await verify()).toMatchObject({ code: 0 });
    // The chain of the erasure is gone, all of it: its head was noted here.
    const writer = readFileSync(join(folder, 'erasure/writer'), 'utf8').trim();
    for (const key of await keysIn(store, `_manifest/${writer}/`)) await store.delete(key);
    const after = await verify();
    expect(after.code).toBe(4);
    expect(after.stdout).toContain('head_missing');
  });

  test('what somebody deleted or overwrote is named by its URL, with exit 4', async () => {
    const { url, store, config } = await setting();
    const [file = '', other = ''] = await keysIn(store, 'dt=');
    await store.delete(file);
    await store.delete(segmentName(WRITERS[0], 2, 2));
    await store.delete(other);
    await store.putIfAbsent(other, { bytes: Buffer.from('made up\n') });
    const forged = { file, records: 0, bytes: 0, sha256: '00', types: {} };
    const times = { first_received_at: '', last_received_at: '' };
    const [line = ''] = chained([{ ...forged, ...times }]);
    await put(store, segmentName('0000000000ff', 1, 1), `${line}\n`);
    const { code, stdout } = await millrace(['archive', 'verify', url, '--config', config]);
    expect(code).toBe(4);
    expect(stdout).toContain(`difference ${url}/_manifest/0000000000ff: line_unsigned`);
    expect(stdout).toContain(`difference ${url}/${file}: file_missing`);
    expect(stdout).toContain(`difference ${url}/${other}: file_`);
    expect(stdout).toContain(`difference ${url}/_manifest/${WRITERS[0]}: segment_missing: line 2 is missing`);
  });

  test('a file that a rule has moved to a class that cannot be read is named; the rest is read', async () => {
    const { url, store, client, config, folder, verify } = await setting();
    const [file = ''] = await keysIn(store, 'dt=');
    const { host: Bucket, pathname } = new URL(`${url}/${file}`);
    const Key = decodeURIComponent(pathname.slice(1));
    const Body = Buffer.concat(await Array.fromAsync(store.get(file)));
    await client.send(new PutObjectCommand({ Bucket, Key, Body, StorageClass: 'GLACIER' }));
    const { code, stdout } = await verify();
    expect(code).toBe(4);
    const { files, differences } = JSON.parse(stdout) as VerifyReport;
    expect(files).toBeGreaterThan(1);
    expect(differences).toEqual([
      expect.objectContaining({
        file,
        code: 'file_unreadable',
        detail: expect.stringMatching(/InvalidObjectState.*: a lifecycle rule .*restore it/),
      }),
    ]);
    const codeOf = async (...args: string[]) => (await millrace([...args, '--config', config])).code;
    // Each does the rest, and says that it is not all.
    expect(await codeOf('replay', url, '--to', 'copy')).toBe(3);
    expect(await codeOf('export', url, '--out', join(folder, 'out'))).toBe(3);
    expect(await codeOf('archive', 'compact', url, '--min-age', '0s')).toBe(3);
    const erased = await millrace(['erase', userId(1), '--now', '--config', config]);
    expect(erased).toMatchObject({ code: 3, stderr: expect.stringContaining('restore it') as string });
    expect(erased.stderr.match(/not erased/g)).toHaveLength(1);
  });

  let shared: ReturnType<typeof setting> | null = null;

  test('a replay that loses its store in the middle continues with --resume: nothing lost, nothing twice', async () => {
    const { folder, url, store, config } = await (shared ??= setting());
    const proxy = await startFaultProxy(emulator.url);
    onTestFinished(() => proxy.stop());
    const last = (await keysIn(store, 'dt=')).at(-1) ?? '';
    proxy.inject(({ method, url: asked = '' }) =>
      method === 'GET' && decodeURIComponent(asked).includes(last) ? 'cut' : null,
    );
    reach(proxy.url);
    const args = ['replay', url, '--to', 'copy', '--config', config];
    const broken = await millrace(args);
    expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining(url) as string });
    reach(emulator.url);
    expect(await millrace([...args, '--resume'])).toMatchObject({ code: 0 });
    const ids = (await records(join(folder, 'copy'))).map(({ record }) => record.id).sort();
    expect(ids).toEqual([1, 2, 3, 4].flatMap((user) => [0, 1, 2, 3].map((n) => `msg_${user}_${n}`)));
  });

  test('a bucket that becomes read-only: each command says so in a line, and does its work when it may', async () => {
    const { folder, url, store, config, verify } = await setting();
    const proxy = await startFaultProxy(emulator.url);
    onTestFinished(() => proxy.stop());
    proxy.inject(({ method }) => (method === 'GET' || method === 'HEAD' ? null : '403'));
    reach(proxy.url);
    const before = await keysIn(store, '');
    const commands = [
      ['archive', 'compact', url, '--min-age', '0s', '--config', config],
      ['erase', userId(1), '--now', '--config', config],
      ['export', url, '--out', `${url} tables`, '--work', join(folder, 'work'), '--config', config],
    ];
    for (const args of commands) {
      const { code, stderr } = await millrace(args);
      const said = `${args.join(' ')}: ${code}: ${stderr}`;
      expect(said).toMatch(/403/);
      expect(said).not.toMatch(/^\s+at /m);
      expect([1, 3], said).toContain(code);
    }
    expect(await verify()).toMatchObject({ code: 0 });
    expect(await keysIn(store, '')).toEqual(before);
    reach(emulator.url);
    for (const args of commands) expect(await millrace(args)).toMatchObject({ code: 0 });
    expect(look(emulator, url, userId(1), secretOf(1))).toMatchObject({ found: [] });
    expect(await verify()).toMatchObject({ code: 0 });
  });

  test('credentials that expire in the middle: what cannot be read is no difference, and an export continues', async () => {
    const { folder, url, config, verify } = await (shared ??= setting());
    const proxy = await startFaultProxy(emulator.url);
    onTestFinished(() => proxy.stop());
    const expire = (allowed: number): void => {
      const end = proxy.requests + allowed;
      proxy.inject(() => (proxy.requests > end ? '403' : null));
    };
    const refused = { code: 1, stderr: expect.stringMatching(/403.*check the credentials/) as string };
    reach(proxy.url);
    // In the middle of the manifest, of the records, and of the kept events, which are read twice.
    for (const allowed of [3, 9, 20]) {
      expire(allowed);
      expect(await verify()).toMatchObject(refused);
    }
    const out = join(folder, 'expired');
    const args = ['export', url, '--out', out, '--format', 'ndjson', '--config', config];
    expire(9);
    expect(await millrace(args)).toMatchObject(refused);
    reach(emulator.url);
    expect(await millrace(args)).toMatchObject({ code: 0 });
    const rows = globSync('**/*.ndjson.gz', { cwd: out }).flatMap((file) =>
      jsonLines<{ _event_id: string }>(gunzipSync(readFileSync(join(out, file)))),
    );
    const ids = rows.map(({ _event_id: id }) => id).toSorted();
    expect(ids).toEqual([1, 2, 3, 4].flatMap((user) => [0, 1, 2, 3].map((n) => `msg_${user}_${n}`)));
  });

  test('export, load, schema infer and check --against read it; another scheme is no folder', async () => {
    const { folder, url, config } = await (shared ??= setting());
    const out = join(folder, 'export');
    const exported = await millrace(['export', url, '--out', out, '--format', 'ndjson', '--json']);
    expect(JSON.parse(exported.stdout)).toMatchObject({ ok: true, records: 16 });
    const again = await millrace(['export', url, '--out', out, '--format', 'ndjson', '--json']);
    expect(JSON.parse(again.stdout)).toMatchObject({ ok: true, records: 0, read: 0 });
    const against = await millrace(['check', '--config', config, '--against', url, '--json']);
    expect(JSON.parse(against.stdout)).toMatchObject({ events: 16, unreadable: 0 });
    for (const args of [
      ['archive', 'verify'],
      ['replay', '--to', 'copy', '--config', config],
      ['schema', 'infer'],
    ]) {
      const refused = await millrace([...args, 'ftp://made-up/archive']);
      expect(refused).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('ftp:// is not known') as string,
      });
    }
    const missing = await millrace(['archive', 'verify', 's3://made-up-missing/archive']);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toMatch(/s3:\/\/made-up-missing.*create the bucket or container/);
  });
});
