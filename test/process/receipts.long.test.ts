import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signJson } from '../../src/core/signature.ts';
import { readSigner as readManifestSigner } from '../../src/privacy/proof/open.ts';
import { LogWriter } from '../../src/privacy/receipts/log-files.ts';
import { type NoteSigner, verifierText } from '../../src/privacy/receipts/note.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { LACKS_GO, verifyInGo } from '../privacy/receipts/go.ts';
import { prove } from '../privacy/receipts/prove.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';
import type { Serving } from '../support/serving.ts';
import {
  entryOf,
  filesBelow,
  type Kept,
  linesOf,
  ORIGIN,
  plainBytes,
  proofs,
  proved,
  receiptsPlace,
  send,
  signerOf,
} from './receipts-scene.ts';
import { saying } from '../support/place.ts';

test.skipIf(LACKS_GO)(
  `each 202 has a receipt that Go verifies, over kills and restarts${skipped(LACKS_GO)}`,
  async () => {
    const place = await receiptsPlace();
    let receiver: Serving = await place.startProcess();
    const kept = await send(receiver, 130);
    await receiver.kill('SIGKILL');
    receiver = await place.start();
    kept.push(...(await send(receiver, 130, 130)));
    await receiver.stop();
    receiver = await place.start();
    kept.push(...(await send(receiver, 4, 260)));
    const leaves = kept.map(({ leaf }) => leaf).toSorted((a, b) => a - b);
    expect(leaves).toEqual(kept.map((_, n) => n));
    const said = verifyInGo(await proofs(receiver, kept));
    expect(said.filter((one) => !one.startsWith('ok '))).toEqual([]);
    // A repeated delivery is none of its own, and there is nothing for what is not in the log.
    const { id, body } = kept[3]!;
    const again = await receiver.post(body, { id });
    expect([again.status, again.headers['millrace-receipt']]).toEqual([200, undefined]);
    expect((await fetch(new URL('/receipts/264', receiver.url))).status).toBe(404);
    expect((await fetch(new URL('/receipts/tile/0/000', receiver.url))).status).toBe(200);
  },
);

/** A log of these entries, made again. */
async function makeAgain(log: string, signer: NoteSigner, entries: readonly string[]): Promise<void> {
  const writer = await LogWriter.open(log, signer);
  writer.append(Buffer.concat(entries.map((entry) => Buffer.from(entry, 'base64'))));
  await writer.checkpoint();
  writer.close();
}

/** The lines of an archive's data, but for those of one event. */
function linesWithout(archive: string, { id }: Kept): string {
  const data = filesBelow(archive).filter(
    (name) => /\.ndjson(\.gz)?$/.test(name) && !name.includes('_manifest'),
  );
  const lines = data.flatMap((name) => plainBytes(name).toString().trimEnd().split('\n'));
  expect(lines.filter((line) => line.includes(id))).toHaveLength(1);
  return `${lines.filter((line) => !line.includes(id)).join('\n')}\n`;
}

async function verify(...args: string[]): Promise<object> {
  const { code, stdout } = await millrace(['receipt', 'verify', ...args, '--json']);
  return { code, ...(JSON.parse(stdout) as object) };
}

test('an event that is taken out on disk, with every hash made right again: both commands name it', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const kept = await send(receiver, 40);
  const [file, complete, archive] = ['kept.ndjson', 'complete.ndjson', 'archive'].map((name) =>
    place.at(name),
  ) as [string, string, string];
  writeFileSync(file, linesOf(kept));
  await proofs(receiver, kept);
  const url = new URL('/receipts/', receiver.url).href;
  expect(await verify(file, '--log', url, '--out', complete)).toMatchObject({
    code: 0,
    proven: 40,
    open: 0,
    false: 0,
  });
  await receiver.stop();
  const more = ['--receipts', file];
  expect(await proved(place, archive, { more })).toMatchObject({
    code: 0,
    events: 40,
    archived: 40,
    missing: [],
    false_heads: [],
  });

  // The archive, written again by the program itself: all its hashes and signatures are good.
  const victim = kept[17]!;
  const forged = await temporaryFolder();
  writeFileSync(join(forged, 'forged.ndjson'), linesWithout(archive, victim));
  expect(await proved(place, forged, { more })).toMatchObject({
    code: 4,
    archived: 39,
    missing: [victim.leaf],
    false_receipts: [],
  });

  // And the log, made again without it, with the log's own key: the receipts that were completed name it.
  const signer = signerOf(place);
  const key = ['--key', verifierText(signer)];
  const ordered = kept.toSorted((a, b) => a.leaf - b.leaf);
  const rewritten = join(forged, 'log');
  await makeAgain(rewritten, signer, ordered.filter((one) => one !== victim).map(entryOf));
  const hidden = await prove(forged, ['--log', rewritten, ...key, ...more]);
  expect(hidden).toMatchObject({ code: 4, said: { missing: [] } });
  expect(hidden.said['false_receipts']).toContainEqual(expect.objectContaining({ id: victim.id }));
  // So do those of all others, once they are complete: the log that they are of was another one.
  const others = join(forged, 'others.ndjson');
  const completed = readFileSync(complete, 'utf8').trimEnd().split('\n');
  writeFileSync(others, completed.filter((line) => !line.includes(victim.id)).join('\n'));
  const zeroed = join(forged, 'zeroed');
  const none = Buffer.alloc(32).toString('base64');
  await makeAgain(
    zeroed,
    signer,
    ordered.map((one) => (one === victim ? none : entryOf(one))),
  );
  const fork = ['--log', zeroed, ...key];
  expect((await prove(forged, fork)).code).toBe(0);
  // The manifest has noted how the log ended: that one agrees with it, and one that was made again does not.
  const listed = await prove(archive, fork);
  expect(listed.code).toBe(4);
  const heads = listed.said['false_heads'] as { size: number }[];
  expect(heads.map(({ size }) => size > victim.leaf)).toContain(true);
  const contradicted = await prove(forged, [...fork, '--receipts', others]);
  expect([contradicted.code, contradicted.said['false_receipts']]).toMatchObject([4, { length: 39 }]);
  expect(await verify(others, ...fork)).toMatchObject({ code: 4, proven: 0, false: 39 });
  expect(await verify(complete, ...key)).toMatchObject({ code: 0, proven: 40 });
});

const flipped = (bytes: Buffer): Buffer => Buffer.from(bytes.map((byte, at) => (at === 5 ? byte ^ 1 : byte)));

test('damaged hashes beside the entries of a log are called that, not a false log, and are made again', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const kept = await send(receiver, 300);
  const log = place.at('receipts');
  const [file, complete, other] = ['kept', 'complete', 'other'].map((name) => place.at(name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(file, linesOf(kept));
  writeFileSync(other, linesOf([{ ...kept.at(-1)!, id: 'msg_made_up_other' }]));
  const [{ key } = { key: '' }] = await proofs(receiver, kept.slice(-1));
  await receiver.stop();
  const verified = (from: string, ...more: string[]) =>
    millrace(['receipt', 'verify', from, '--log', log, '--key', key, ...more]);
  expect((await verified(file, '--out', complete)).code).toBe(0);

  const hashes = join(log, 'hashes-1');
  const whole = readFileSync(hashes);
  for (const damage of [
    () => writeFileSync(hashes, flipped(whole)),
    () => writeFileSync(hashes, whole.subarray(0, 7)),
    () => rmSync(hashes),
  ]) {
    damage();
    for (const from of [file, complete])
      expect(await verified(from), String(damage)).toMatchObject(
        saying(1, 'the hashes beside them are damaged'),
      );
    // What is not in the log stays false, whatever the hashes are.
    expect((await verified(other)).code).toBe(4);
    const again = await place.start();
    await again.stop();
    expect(again.stderr).toContain('they were made again from its entries');
    expect([readFileSync(hashes), (await verified(complete)).code]).toEqual([whole, 0]);
  }
  // Entries are nothing that could be made again.
  writeFileSync(join(log, 'entries'), flipped(readFileSync(join(log, 'entries'))));
  expect((await verified(file)).code).toBe(4);
  rmSync(hashes);
  const refused = await place.run('serve');
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('is not the log that its checkpoint is of');
});

const unconfirmed = (ids: readonly Kept[], erasure: string): object[] =>
  ids.map(({ id }) => ({ id, erasure }));

test('an erasure that no one has asked for, signed by somebody who has the disk, does not account for an event of a sender', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const kept = await send(receiver, 20);
  await proofs(receiver, kept);
  await receiver.stop();
  await place.ok('erase', kept[0]!.user, '--now');
  const theirs = kept.filter(({ user }) => user === kept[0]!.user);
  const receipts = place.at('erasure', 'receipts');
  const [real = ''] = readdirSync(receipts).map((name) => name.replace('.json', ''));

  // One more event goes, and a receipt is made for it with the key that lies beside the archive.
  const victim = kept.find((one) => !theirs.includes(one))!;
  const copy = await temporaryFolder();
  writeFileSync(join(copy, 'copy.ndjson'), linesWithout(place.at('archive'), victim));
  const model = JSON.parse(readFileSync(join(receipts, `${real}.json`), 'utf8')) as Record<string, unknown>;
  const { signed_by: _by, signature: _signature, ...plain } = model;
  const item = { store: 'archive', item: 'copy.ndjson', removed: 1, sha256_before: null, sha256_after: null };
  const forgery = 'abcdef0123456789';
  const items = [{ ...item, entries: [entryOf(victim)] }];
  const made = JSON.stringify({ ...plain, receipt: forgery, records_removed: 1, items });
  const signer = readManifestSigner(place.at('erasure', 'manifest.key'))!;
  writeFileSync(join(receipts, `${forgery}.json`), signJson('receipt', made, signer));

  const file = place.at('kept.ndjson');
  writeFileSync(file, linesOf(kept));
  const more = ['--receipts', file];
  const all = await proved(place, copy, { more });
  expect(all).toMatchObject({ code: 3, missing: [] });
  expect(all['unconfirmed']).toEqual(
    expect.arrayContaining([...unconfirmed([victim], forgery), ...unconfirmed(theirs, real)]),
  );
  more.push('--erasure', real);
  const left = { code: 3, unconfirmed: unconfirmed([victim], forgery) };
  expect(await proved(place, copy, { more })).toMatchObject(left);
  const text = await place.run('archive', 'prove', copy, ...more);
  expect(text.stdout).toContain(`erased     ${victim.id}: by erasure ${forgery}`);
  rmSync(join(receipts, `${forgery}.json`));
  const proven = { code: 0, unconfirmed: [], erased: theirs.length };
  expect(await proved(place, place.at('archive'), { more })).toMatchObject(proven);
});

const wrong = (count: number): object => ({ code: 4, log: null, differences: [['log', count]] });

test('an older copy of the log, or another one in its place, is refused; a new name begins a new log', async () => {
  const place = await receiptsPlace();
  const log = place.at('receipts');
  const counted = async () => {
    const { code, log: head, differences } = await place.json('reconcile');
    const counts = (differences as { code: string; count: number }[]).map((one) => [one.code, one.count]);
    return { code, log: head as unknown, differences: counts };
  };
  let receiver: Serving = await place.start();
  await proofs(receiver, await send(receiver, 20));
  // The running receiver is asked for its journal.
  expect(await counted()).toMatchObject({ code: 0, log: { size: 20, waiting: 0 } });
  await receiver.stop();
  cpSync(log, place.at('older'), { recursive: true });
  cpSync(place.at('journal'), place.at('older-journal'), { recursive: true });
  receiver = await place.start();
  await proofs(receiver, await send(receiver, 20, 20));
  await receiver.stop();
  const refused = async () => (await place.run('serve')).stderr;
  // It names the head that is signed, and both sides of the comparison are looked at.
  const [, size, root] = readFileSync(join(log, 'checkpoint'), 'utf8').split('\n');
  expect(size).toBe('40');
  const head = { origin: ORIGIN, size: 40, root, waiting: 0 };
  expect(await counted()).toEqual({ code: 0, log: head, differences: [] });
  const journal = place.at('journal');
  renameSync(journal, place.at('newer-journal'));
  renameSync(place.at('older-journal'), journal);
  expect((await counted()).differences).toContainEqual(['log', 20]);
  rmSync(journal, { recursive: true });
  renameSync(place.at('newer-journal'), journal);
  writeFileSync(join(log, 'entries'), readFileSync(join(log, 'entries')).fill(1, 32, 33));
  expect(await counted()).toEqual(wrong(1));
  rmSync(log, { recursive: true });
  expect(await counted()).toEqual(wrong(1));
  cpSync(place.at('older'), log, { recursive: true });
  expect(await counted()).toEqual(wrong(20));
  expect(await refused()).toContain('it is an older copy');
  rmSync(join(log, 'checkpoint'));
  expect(await refused()).toContain('it is an older copy');
  rmSync(log, { recursive: true });
  expect(await refused()).toContain('it was removed or replaced');
  place.edit(({ receipts }) => {
    receipts.origin = 'made-up.example/second';
    receipts.path = place.at('second');
  });
  receiver = await place.start();
  const next = await receiver.post(madeUpEvent(50).body, { id: 'msg_made_up_second' });
  expect(next.headers['millrace-receipt']).toContain('log="made-up.example/second", leaf=0,');
});
