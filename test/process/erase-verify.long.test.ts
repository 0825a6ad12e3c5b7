import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signJson } from '../../src/core/signature.ts';
import { LogWriter } from '../../src/privacy/receipts/log-files.ts';
import { type NoteSigner, readSigner, verifierText } from '../../src/privacy/receipts/note.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { type Place, saying } from '../support/place.ts';
import {
  type Kept,
  ORIGIN,
  filesBelow,
  plainBytes,
  proved,
  receiptsPlace,
  send,
  signerOf,
} from './receipts-scene.ts';

const env = { MILLRACE_MASTER_KEY: `mrk_${Buffer.alloc(32, 5).toString('base64')}` };
const COUNT = 24;

/** Sends events of several users and stops, with all of them in the archive and in the log. */
async function prepared(sink: object = {}) {
  const archived = (folder: string): object => ({
    sinks: { archive: { type: 'files', path: join(folder, 'archive'), ...sink } },
  });
  const place = await receiptsPlace(archived, env);
  const receiver = await place.start();
  const sent = await send(receiver, COUNT);
  await receiver.stop();
  const victim = sent[0]!.user;
  return {
    place,
    archive: place.at('archive'),
    sent,
    victim,
    theirs: sent.filter(({ user }) => user === victim),
  };
}

/** @returns the path of the receipt */
async function erase(place: Place, ...args: string[]): Promise<string> {
  const { code, receipts } = await place.json('erase', ...args);
  expect(code).toBe(0);
  return place.at('erasure', 'receipts', `${receipts[0].receipt}.json`);
}

/** Without a config, as somebody does who has nothing else of the installation. */
async function verifyBy(...args: string[]) {
  const { code, stdout, stderr } = await millrace(['erase', 'verify', ...args, '--json'], { env });
  expect(stdout, stderr).not.toBe('');
  return { code, ...(JSON.parse(stdout) as { differences: readonly string[] }) };
}

/** A log of these entries, made again. */
async function makeAgain(log: string, signer: NoteSigner, entries: Buffer): Promise<void> {
  const writer = await LogWriter.open(log, signer);
  writer.append(entries);
  await writer.checkpoint();
  writer.close();
}

/** What somebody can do who has every file, and knows all of a delivery but its salt: tries each that stands anywhere. */
function confirms(folder: string, { id, body, received, leaf }: Kept): boolean {
  const log = readFileSync(join(folder, 'receipts', 'entries'));
  const entry = log.subarray(leaf * 32, leaf * 32 + 32);
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(received));
  const rest = Buffer.concat([time, createHash('sha256').update(body).digest(), Buffer.from(id)]);
  const matches = (salt: Buffer): boolean =>
    createHash('sha256').update('millrace receipt v1\n').update(salt).update(rest).digest().equals(entry);
  const tried = new Set<string>();
  for (const file of filesBelow(folder))
    for (const [run] of plainBytes(file)
      .toString('latin1')
      .matchAll(/[\w-]{22,}/g))
      for (let at = 0; at + 22 <= run.length; at += 1) tried.add(run.slice(at, at + 22));
  return [...tried].some((text) => matches(Buffer.from(text, 'base64url')));
}

test('an auditor verifies an erasure, with the log or without, and no one can confirm a guess any more', async () => {
  const { place, archive, sent, theirs, victim } = await prepared();
  const { folder } = place;
  expect(confirms(folder, theirs[0]!)).toBe(true);
  const before = filesBelow(archive).map(plainBytes);
  const receipt = await erase(place, victim, '--now');
  expect(confirms(folder, theirs[0]!)).toBe(false);
  // Of a delivery of theirs nothing is left but its entry.
  const left = filesBelow(folder)
    .filter((name) => !name.endsWith('.key'))
    .map(plainBytes);
  for (const { id, salt } of theirs)
    for (const trace of [id, victim, salt, salt.toString('base64url'), salt.toString('hex')])
      expect(left.filter((bytes) => bytes.includes(trace))).toEqual([]);
  const complete = place.at('complete.json');
  const all = await place.json('erase', 'verify', receipt, '--archive', archive, '--out', complete);
  expect(all).toMatchObject({
    code: 0,
    entries: theirs.length,
    proven: theirs.length,
    differences: [],
    archives: [{ records: COUNT - theirs.length, closed: 0 }],
  });
  const accounted = {
    code: 0,
    events: COUNT,
    archived: COUNT - theirs.length,
    erased: theirs.length,
    missing: [],
  };
  expect(await proved(place, archive, { env })).toMatchObject(accounted);

  // Offline, by two public keys and nothing else of the installation.
  const publicKey = (await place.ok('keys', 'public')).trim();
  const signer = signerOf(place);
  const by = ['--public-key', publicKey, '--key', verifierText(signer)];
  expect(await verifyBy(complete, ...by)).toMatchObject({ code: 0, proven: theirs.length });
  expect(readFileSync(complete, 'utf8')).not.toContain(victim);
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const wrong = verifierText(readSigner(ORIGIN, pem));
  expect(await verifyBy(complete, ...by.slice(0, 2), '--key', wrong)).toMatchObject({ code: 4, proven: 0 });

  // A word of it that is changed or added is found.
  const value = JSON.parse(readFileSync(receipt, 'utf8')) as Record<string, unknown>;
  const forged = place.at('forged.json');
  for (const changed of [
    { ...value, records_removed: 0 },
    { user_id: victim, ...value },
    { ...value, signature: undefined, signed_by: undefined },
  ]) {
    writeFileSync(forged, JSON.stringify(changed));
    const found = await verifyBy(forged, ...by);
    expect([found.code, found.differences.length > 0]).toEqual([4, true]);
  }
  // An archive that still has the events, as another name or as it was; and a log that was made again without them.
  mkdirSync(place.at('kept'));
  const data = before.find((bytes) => bytes.includes(victim) && bytes.includes('"event":'))!;
  writeFileSync(place.at('kept', 'kept.ndjson'), data);
  const still = await place.json('erase', 'verify', receipt, '--archive', place.at('kept'));
  expect(still.code).toBe(4);
  const kept = (still.differences as string[]).filter((one) => one.includes('the receipt says was erased'));
  expect(kept).toHaveLength(theirs.length);
  await makeAgain(place.at('again'), signer, Buffer.alloc(32 * COUNT));
  const other = await verifyBy(receipt, ...by, '--log', place.at('again'));
  expect(other).toMatchObject({ code: 4, proven: 0 });
  expect(other.differences.join()).toContain(
    `the log was made again: it had ${COUNT} other entries at the time of the receipt`,
  );

  // A user who is erased is answered with no receipt, and takes no place.
  const receiver = await place.start();
  const back = await receiver.post(theirs[0]!.body, { id: 'msg_made_up_back' });
  expect([back.status, back.headers['millrace-receipt']]).toEqual([202, undefined]);
  const another = sent.find((one) => !theirs.includes(one))!;
  const next = await receiver.post(another.body, { id: 'msg_made_up_next' });
  expect(next.headers['millrace-receipt']).toContain(`leaf=${COUNT},`);
});

test('entries of an earlier log are no differences of the one after it, and are proven by their own', async () => {
  const { place, theirs, victim } = await prepared();
  const [second, again] = [place.at('second'), place.at('again')];
  const origin = 'made-up.example/second';
  const next = signerOf(place, origin);
  await makeAgain(second, next, Buffer.alloc(96, 7));
  place.edit(({ receipts }) => Object.assign(receipts, { origin, path: second }));
  const receipt = await erase(place, victim, '--now');
  const unproven = theirs.map(() => expect.stringContaining('an earlier log') as string);
  const verify = (...args: string[]) => place.json('erase', 'verify', receipt, ...args);
  expect(await verify()).toMatchObject({ code: 3, proven: 0, differences: [], unproven });
  const first = ['--log', place.at('receipts'), '--key', verifierText(signerOf(place))];
  const all = { code: 0, proven: theirs.length, unproven: [], differences: [] };
  expect(await verify(...first)).toMatchObject(all);
  // What the receipt says of its log does not excuse a log that was made again.
  await makeAgain(again, next, Buffer.alloc(96, 8));
  const found = await verify('--log', again);
  expect([found.code, found.differences.length]).toEqual([4, theirs.length + 1]);
});

test('of a sealed archive, the receipt names what the destroyed keys had sealed: nothing is missing, and a removed record is', async () => {
  const { place, archive, theirs, victim, sent } = await prepared({
    compress: 'none',
    encrypt: { store: join(await temporaryFolder(), 'keys'), masterKey: '${MILLRACE_MASTER_KEY}' },
  });
  // The journal has forgotten them all.
  rmSync(place.at('journal'), { recursive: true });
  const receipt = await erase(place, victim, '--now');
  const prove = () => proved(place, archive, { env });
  const { length } = theirs;
  const proven = { archived: COUNT - length, erased: length, closed: length, missing: [] };
  expect(await prove()).toMatchObject(proven);
  expect(await place.json('erase', 'verify', receipt, '--archive', archive)).toMatchObject({
    code: 0,
    proven: length,
    archives: [{ records: COUNT, closed: length }],
  });
  expect(confirms(place.folder, theirs[0]!)).toBe(false);
  // One of somebody else that is taken out is distinguished from those.
  const file = filesBelow(archive).find((one) => one.endsWith('.ndjson'))!;
  const lines = readFileSync(file, 'utf8').split('\n');
  // Only the key could say which of them it is: those of the erased user may be missing.
  const missing: number[] = [];
  for (let at = 0; at <= length && missing.length === 0; at += 1) {
    writeFileSync(file, lines.toSpliced(at, 1).join('\n'));
    missing.push(...((await prove())['missing'] as number[]));
  }
  expect(missing).toHaveLength(1);
  expect(sent.find(({ leaf }) => leaf === missing[0])?.user).not.toBe(victim);
});

test('a receipt that is signed and says what cannot be is a difference, and an erasure that waits is named', async () => {
  const { place, archive, theirs, victim } = await prepared();
  const inWay = join(archive, 'in-the-way.txt');
  writeFileSync(inWay, victim);
  const { left } = await place.json('erase', victim, '--now');
  const prove = () => proved(place, archive, { env });
  const open = [{ request: left[0].requests[0] as string, entries: theirs.length }];
  expect(await prove()).toMatchObject({ code: 3, missing: [], erased: 0, open });
  rmSync(inWay);
  const receipt = await erase(place, '--run');
  expect(await prove()).toMatchObject({ code: 0, open: [], erased: theirs.length });

  const log = ['--log', place.at('receipts')];
  const key = createPrivateKey(readFileSync(place.at('erasure', 'manifest.key')));
  const publicKey = String(createPublicKey(key).export({ format: 'jwk' }).x);
  const by = ['--public-key', publicKey, '--key', verifierText(signerOf(place))];
  const receiptNow = readFileSync(receipt, 'utf8');
  const { signed_by: _, signature: __, ...plain } = JSON.parse(receiptNow);
  const forged = place.at('forged.json');
  const forge = (changes: object): string => {
    const text = signJson('receipt', JSON.stringify({ ...plain, ...changes }), { key, publicKey });
    writeFileSync(forged, text);
    return text;
  };
  const bundle = place.at('bundle.json');
  // Proofs that are left out prove nothing.
  for (const proofs of [{}, [], undefined]) {
    writeFileSync(bundle, JSON.stringify({ receipt: JSON.parse(forge({})) as object, proofs }));
    expect(await verifyBy(bundle, ...by)).toMatchObject({ code: 4, proven: 0 });
  }
  // Entries from after the time of the receipt; and another log, by a receipt that names no entries.
  const early = { log: { ...plain.log, size: 0 } };
  forge(early);
  expect((await verifyBy(forged, ...by, ...log)).differences.join()).toContain('which had 0 at the time');
  const bare = { records_removed: 0, items: [] };
  const other = { log: { ...plain.log, root: Buffer.alloc(32).toString('base64') } };
  forge(bare);
  expect((await verifyBy(forged, ...by, ...log)).code).toBe(0);
  forge({ ...bare, ...other });
  expect((await verifyBy(forged, ...by, ...log)).code).toBe(4);
  for (const [changes, found] of [
    [early, { code: 4, false_receipts: [{ id: receipt }] }],
    [other, { code: 4, false_heads: [{ file: receipt }] }],
  ] as const) {
    writeFileSync(receipt, forge(changes));
    expect(await prove()).toMatchObject(found);
  }
  forge({ items: [null] });
  expect(await millrace(['erase', 'verify', forged, ...by], { env })).toMatchObject(
    saying(2, 'is not the receipt of an erasure'),
  );
});
