import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { signJson } from '../../src/core/signature.ts';
import { LogWriter } from '../../src/receipts/log-files.ts';
import { readSigner, verifierText } from '../../src/receipts/note.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { prove as proveArchive } from '../receipts/prove.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';

const ORIGIN = 'made-up.example/events';
const env = { MILLRACE_MASTER_KEY: `mrk_${Buffer.alloc(32, 5).toString('base64')}` };
const COUNT = 24;

interface Sent {
  readonly id: string;
  readonly user: string;
  readonly body: Buffer;
  readonly leaf: number;
  readonly received: number;
}

interface Verified {
  readonly code: number | null;
  readonly entries: number;
  readonly proven: number | null;
  readonly archives: readonly { readonly records: number; readonly closed: number }[];
  readonly differences: readonly string[];
}

/** Sends events of several users and stops, with all of them in the archive and in the log. */
async function prepared(sink: object = {}) {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const config = writeConfig(folder, {
    receipts: { path: join(folder, 'receipts'), origin: ORIGIN, interval: '50ms' },
    sinks: { archive: { type: 'files', path: archive, ...sink } },
  });
  const receiver = await Receiver.start(config, { env });
  const sent: Sent[] = [];
  for (let n = 0; n < COUNT; n += 1) {
    const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
    const { headers } = await postSigned(receiver.url, body, { id });
    const [, leaf, received] =
      /leaf=(\d+), .*received=(\d+)$/.exec(String(headers['millrace-receipt'])) ?? [];
    const user = (JSON.parse(body.toString()) as { user_id: string }).user_id;
    sent.push({ id, user, body, leaf: Number(leaf), received: Number(received) });
  }
  await receiver.kill('SIGTERM');
  const victim = sent[0]!.user;
  return { folder, archive, config, sent, victim, theirs: sent.filter(({ user }) => user === victim) };
}

async function erase(config: string, user: string, folder: string): Promise<string> {
  const { code, stderr, stdout } = await millrace(['erase', user, '--now', '--config', config, '--json'], {
    env,
  });
  expect(code, stderr).toBe(0);
  const { receipts } = JSON.parse(stdout) as { receipts: { receipt: string }[] };
  return join(folder, 'erasure', 'receipts', `${receipts[0]!.receipt}.json`);
}

async function verify(...args: string[]): Promise<Verified> {
  const { code, stdout, stderr } = await millrace(['erase', 'verify', ...args, '--json'], { env });
  expect(stdout, stderr).not.toBe('');
  return { code, ...(JSON.parse(stdout) as Omit<Verified, 'code'>) };
}

function filesBelow(folder: string): Buffer[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
    .map((bytes) => (bytes.subarray(0, 2).equals(Buffer.of(0x1f, 0x8b)) ? gunzipSync(bytes) : bytes));
}

/** What somebody can do who has every file, and knows all of a delivery but its salt: tries each that stands anywhere. */
function confirms(folder: string, { id, body, received, leaf }: Sent): boolean {
  const log = readFileSync(join(folder, 'receipts', 'entries'));
  const entry = log.subarray(leaf * 32, leaf * 32 + 32);
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(received));
  const rest = Buffer.concat([time, createHash('sha256').update(body).digest(), Buffer.from(id)]);
  const fits = (salt: Buffer): boolean =>
    createHash('sha256').update('millrace receipt v1\n').update(salt).update(rest).digest().equals(entry);
  const tried = new Set<string>();
  for (const bytes of filesBelow(folder))
    for (const [run] of bytes.toString('latin1').matchAll(/[\w-]{22,}/g))
      for (let at = 0; at + 22 <= run.length; at += 1) tried.add(run.slice(at, at + 22));
  return [...tried].some((text) => fits(Buffer.from(text, 'base64url')));
}

test('an auditor verifies an erasure, with the log or without, and nobody confirms a guess any more', async () => {
  const { folder, archive, config, theirs, victim } = await prepared();
  expect(confirms(folder, theirs[0]!)).toBe(true);
  const before = filesBelow(archive);
  const receipt = await erase(config, victim, folder);
  expect(confirms(folder, theirs[0]!)).toBe(false);
  const complete = join(folder, 'complete.json');
  const all = await verify(receipt, '--config', config, '--archive', archive, '--out', complete);
  expect(all).toMatchObject({ code: 0, entries: theirs.length, proven: theirs.length, differences: [] });
  expect(all.archives).toMatchObject([{ records: COUNT - theirs.length, closed: 0 }]);

  // Offline, by two public keys and nothing else of the installation.
  const keys = await millrace(['keys', 'public', '--config', config], { env });
  const signer = readSigner(ORIGIN, readFileSync(join(folder, 'erasure', 'receipts.key'), 'utf8'));
  const by = ['--public-key', keys.stdout.trim(), '--key', verifierText(signer)];
  expect(await verify(complete, ...by)).toMatchObject({ code: 0, proven: theirs.length });
  expect(readFileSync(complete, 'utf8')).not.toContain(victim);
  const wrong = verifierText(readSigner(ORIGIN, pem()));
  expect(await verify(complete, ...by.slice(0, 2), '--key', wrong)).toMatchObject({ code: 4, proven: 0 });

  // Whoever changes a word of it, or adds one, is found out.
  const value = JSON.parse(readFileSync(receipt, 'utf8')) as Record<string, unknown>;
  const forged = join(folder, 'forged.json');
  for (const changed of [
    { ...value, records_removed: 0 },
    { user_id: victim, ...value },
    { ...value, signature: undefined, signed_by: undefined },
  ]) {
    writeFileSync(forged, JSON.stringify(changed));
    const found = await verify(forged, ...by);
    expect(found.code).toBe(4);
    expect(found.differences.length).toBeGreaterThan(0);
  }
  // An archive that still has the events, as another name or as it was; and a log that was made again without them.
  const kept = join(folder, 'kept');
  mkdirSync(kept);
  const data = before.find((bytes) => bytes.includes(victim) && bytes.includes('"event":'))!;
  writeFileSync(join(kept, 'kept.ndjson'), data);
  const still = await verify(receipt, '--config', config, '--archive', kept);
  expect(still.code).toBe(4);
  expect(still.differences.filter((one) => one.includes('the receipt says was erased'))).toHaveLength(
    theirs.length,
  );
  const again = join(folder, 'again');
  const writer = await LogWriter.open(again, signer);
  writer.append(Buffer.alloc(32 * COUNT));
  await writer.checkpoint();
  writer.close();
  const other = await verify(receipt, ...by, '--log', again);
  expect(other).toMatchObject({ code: 4, proven: 0 });
  expect(other.differences.join()).toContain(
    `the log had ${COUNT} entries at the time of the receipt, and other ones`,
  );
});

test('entries of an earlier log are no differences of the one after it, and are proven by their own', async () => {
  const { folder, config, theirs, victim } = await prepared();
  const text = readFileSync(join(folder, 'erasure', 'receipts.key'), 'utf8');
  const second = join(folder, 'second');
  const next = readSigner('made-up.example/second', text);
  const begin = async (place: string, byte: number): Promise<void> => {
    const writer = await LogWriter.open(place, next);
    writer.append(Buffer.alloc(96, byte));
    await writer.checkpoint();
    writer.close();
  };
  await begin(second, 7);
  const settings = JSON.parse(readFileSync(config, 'utf8')) as { receipts: object };
  settings.receipts = { ...settings.receipts, origin: 'made-up.example/second', path: second };
  writeFileSync(config, JSON.stringify(settings));
  const receipt = await erase(config, victim, folder);
  const unproven = theirs.map(() => expect.stringContaining('an earlier log') as string);
  const open = { code: 3, proven: 0, differences: [], unproven };
  expect(await verify(receipt, '--config', config)).toMatchObject(open);
  const first = ['--log', join(folder, 'receipts'), '--key', verifierText(readSigner(ORIGIN, text))];
  expect(await verify(receipt, '--config', config, ...first)).toMatchObject({
    code: 0,
    proven: theirs.length,
    unproven: [],
    differences: [],
  });
  // What the receipt says of its log does not excuse a log that was made again.
  const again = join(folder, 'again');
  await begin(again, 8);
  const found = await verify(receipt, '--config', config, '--log', again);
  expect([found.code, found.differences.length]).toEqual([4, theirs.length + 1]);
});

function pem(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

test('of a sealed archive, the receipt names what the destroyed keys had sealed: nothing is missing, and a removed record is', async () => {
  const { folder, archive, config, theirs, victim, sent } = await prepared({
    compress: 'none',
    encrypt: { store: join(await temporaryFolder(), 'keys'), masterKey: '${MILLRACE_MASTER_KEY}' },
  });
  // The journal has forgotten them all.
  rmSync(join(folder, 'journal'), { recursive: true });
  const receipt = await erase(config, victim, folder);
  const prove = async () => {
    const { said } = await proveArchive(archive, ['--config', config], env);
    return said as { missing: number[] };
  };
  expect(await prove()).toMatchObject({
    archived: COUNT - theirs.length,
    erased: theirs.length,
    closed: theirs.length,
    missing: [],
  });
  expect(await verify(receipt, '--config', config, '--archive', archive)).toMatchObject({
    code: 0,
    proven: theirs.length,
    archives: [{ records: COUNT, closed: theirs.length }],
  });
  expect(confirms(folder, theirs[0]!)).toBe(false);
  // One of somebody else that is taken out is told from those.
  const name = readdirSync(archive, { recursive: true, encoding: 'utf8' }).find((one) =>
    one.endsWith('.ndjson'),
  )!;
  const lines = readFileSync(join(archive, name), 'utf8').split('\n');
  // Of which of them it is one only the key could tell: the erased user's may go, nobody misses those.
  const missing: number[] = [];
  for (let at = 0; at <= theirs.length && missing.length === 0; at += 1) {
    writeFileSync(join(archive, name), lines.toSpliced(at, 1).join('\n'));
    missing.push(...(await prove()).missing);
  }
  expect(missing).toHaveLength(1);
  expect(sent.find(({ leaf }) => leaf === missing[0])?.user).not.toBe(victim);
});

test('a receipt that is signed and says what cannot be is a difference, and an erasure that waits is named', async () => {
  const { folder, archive, config, theirs, victim } = await prepared();
  const inWay = join(archive, 'in-the-way.txt');
  writeFileSync(inWay, victim);
  const waiting = await millrace(['erase', victim, '--now', '--config', config, '--json'], { env });
  const { left } = JSON.parse(waiting.stdout) as { left: { requests: string[] }[] };
  const prove = async () => {
    const { code, said } = await proveArchive(archive, ['--config', config], env);
    return { code, ...(said as { missing: number[] }) };
  };
  expect(await prove()).toMatchObject({
    code: 3,
    missing: [],
    erased: 0,
    open: [{ request: left[0]!.requests[0], entries: theirs.length }],
  });
  rmSync(inWay);
  const { stdout } = await millrace(['erase', '--run', '--config', config, '--json'], { env });
  const { receipts } = JSON.parse(stdout) as { receipts: { receipt: string }[] };
  const receipt = join(folder, 'erasure', 'receipts', `${receipts[0]!.receipt}.json`);
  expect(await prove()).toMatchObject({ code: 0, open: [], erased: theirs.length });

  const log = join(folder, 'receipts');
  const logKey = verifierText(
    readSigner(ORIGIN, readFileSync(join(folder, 'erasure', 'receipts.key'), 'utf8')),
  );
  const key = createPrivateKey(readFileSync(join(folder, 'erasure', 'manifest.key')));
  const publicKey = String(createPublicKey(key).export({ format: 'jwk' }).x);
  const by = ['--public-key', publicKey, '--key', logKey];
  const {
    signed_by: _,
    signature: __,
    ...plain
  } = JSON.parse(readFileSync(receipt, 'utf8')) as {
    log: { size: number; root: string };
    items: object[];
  } & Record<string, unknown>;
  const forged = join(folder, 'forged.json');
  const forge = (changes: object): string => {
    const text = signJson('receipt', JSON.stringify({ ...plain, ...changes }), { key, publicKey });
    writeFileSync(forged, text);
    return text;
  };
  const bundle = join(folder, 'bundle.json');
  // Proofs that are left out prove nothing.
  for (const proofs of [{}, [], undefined]) {
    writeFileSync(bundle, JSON.stringify({ receipt: JSON.parse(forge({})) as object, proofs }));
    expect(await verify(bundle, ...by)).toMatchObject({ code: 4, proven: 0 });
  }
  // Entries from after the time of the receipt; and another log, by a receipt that names no entries.
  const early = { ...plain.log, size: 0 };
  forge({ log: early });
  expect((await verify(forged, ...by, '--log', log)).differences.join()).toContain('which had 0 at the time');
  const bare = { records_removed: 0, items: [] };
  const other = { ...plain.log, root: Buffer.alloc(32).toString('base64') };
  forge({ ...bare });
  expect((await verify(forged, ...by, '--log', log)).code).toBe(0);
  forge({ ...bare, log: other });
  expect((await verify(forged, ...by, '--log', log)).code).toBe(4);
  const receiptNow = readFileSync(receipt);
  for (const [changes, found] of [
    [{ log: early }, { code: 4, false_receipts: [{ id: receipt }] }],
    [{ log: other }, { code: 4, false_heads: [{ file: receipt }] }],
  ] as const) {
    writeFileSync(receipt, forge(changes));
    expect(await prove()).toMatchObject(found);
  }
  writeFileSync(receipt, receiptNow);
  forge({ items: [null] });
  const ended = await millrace(['erase', 'verify', forged, ...by], { env });
  expect([ended.code, ended.stderr]).toEqual([
    2,
    expect.stringContaining('is not the receipt of an erasure'),
  ]);
});
