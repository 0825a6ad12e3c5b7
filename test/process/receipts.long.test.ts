import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { LogWriter } from '../../src/receipts/log-files.ts';
import { signJson } from '../../src/core/signature.ts';
import { readSigner as readManifestSigner } from '../../src/proof/open.ts';
import { readSigner, verifierText } from '../../src/receipts/note.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { entryByHand } from '../receipts/entry-by-hand.ts';
import { LACKS_GO, verifyInGo } from '../receipts/go.ts';
import { prove } from '../receipts/prove.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const ORIGIN = 'made-up.example/events';

/** What a sender keeps of a delivery. */
interface Kept {
  readonly id: string;
  readonly body: Buffer;
  readonly leaf: number;
  readonly salt: Buffer;
  readonly received: number;
}

async function configured(more: Readonly<Record<string, object>> = {}) {
  const folder = await temporaryFolder();
  const receipts = { path: join(folder, 'receipts'), origin: ORIGIN, interval: '50ms' };
  return { folder, config: writeConfig(folder, { receipts, ...more }) };
}

async function send(receiver: Serving, numbers: readonly number[]): Promise<Kept[]> {
  const kept = await Promise.all(
    numbers.map(async (n) => {
      const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
      const { status, headers } = await postSigned(receiver.url, body, { id });
      const text = String(headers['millrace-receipt'] ?? '');
      const [, origin, leaf, salt = '', received] =
        /^log="(.+)", leaf=(\d+), salt="([\w-]{22})", received=(\d+)$/.exec(text) ?? [];
      expect([status, origin]).toEqual([202, ORIGIN]);
      return {
        id,
        body,
        leaf: Number(leaf),
        salt: Buffer.from(salt, 'base64url'),
        received: Number(received),
      };
    }),
  );
  return kept;
}

async function proofs(receiver: Serving, all: readonly Kept[]) {
  const base = new URL('/receipts/', receiver.url);
  const key = (await (await fetch(new URL('key', base))).text()).trim();
  return Promise.all(
    all.map(async (kept) => {
      const proof = await until('the entry to be in the log', async () => {
        const answer = await fetch(new URL(String(kept.leaf), base));
        return answer.status === 200 && answer.text();
      });
      return { key, entry: entryByHand(kept), proof };
    }),
  );
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);

test.skipIf(LACKS_GO)(
  `each 202 has a receipt that Go verifies, over kills and restarts${skipped(LACKS_GO)}`,
  async () => {
    const { config } = await configured();
    let receiver: Serving = await ReceiverProcess.start(config);
    const kept = await send(receiver, numbers(0, 130));
    await receiver.kill('SIGKILL');
    receiver = await Receiver.start(config);
    kept.push(...(await send(receiver, numbers(130, 130))));
    await receiver.kill('SIGTERM');
    receiver = await Receiver.start(config);
    kept.push(...(await send(receiver, numbers(260, 4))));
    expect(new Set(kept.map(({ leaf }) => leaf)).size).toBe(kept.length);
    expect(kept.map(({ leaf }) => leaf).toSorted((a, b) => a - b)).toEqual(numbers(0, kept.length));
    const said = verifyInGo(await proofs(receiver, kept));
    expect(said.filter((one) => !one.startsWith('ok '))).toEqual([]);
    // A repeated delivery is none of its own, and there is nothing for what is not in the log.
    const { id, body } = kept[3]!;
    const again = await postSigned(receiver.url, body, { id });
    expect([again.status, again.headers['millrace-receipt']]).toEqual([200, undefined]);
    expect((await fetch(new URL('/receipts/264', receiver.url))).status).toBe(404);
    expect((await fetch(new URL('/receipts/tile/0/000', receiver.url))).status).toBe(200);
  },
);

test('a log that has just begun proves nothing and accuses nobody, and a place without one is no log', async () => {
  const { folder, config } = await configured();
  const receiver = await Receiver.start(config);
  const url = new URL('/receipts', receiver.url).href;
  const [archive, log] = [join(folder, 'archive'), join(folder, 'receipts')];
  const key = ['--key', (await (await fetch(`${url}/key`)).text()).trim()];
  const proves = async (place: string) => millrace(['archive', 'prove', archive, '--log', place, ...key]);
  for (const place of [url, log]) {
    const { code, stdout } = await proves(place);
    expect([code, stdout]).toEqual([0, expect.stringContaining('nothing to prove')]);
  }
  const [one] = await send(receiver, [1]);
  const file = join(folder, 'kept.ndjson');
  writeFileSync(file, keptLines([one!]));
  await proofs(receiver, [one!]);
  const nowhere = [join(folder, 'nowhere'), new URL('/elsewhere', receiver.url).href];
  for (const place of nowhere) {
    expect((await proves(place)).code).toBe(1);
    expect((await millrace(['receipt', 'verify', file, '--log', place, ...key])).code).toBe(1);
  }
  await ended(receiver);
  // Its checkpoint taken away, it is not empty.
  rmSync(join(log, 'checkpoint'));
  expect((await proves(log)).code).toBe(1);
});

/** What `millrace send` prints, and a sender keeps. */
function keptLines(all: readonly Kept[]): string {
  return all
    .map(({ id, body, leaf, salt, received }) => {
      const receipt = `log="${ORIGIN}", leaf=${leaf}, salt="${salt.toString('base64url')}", received=${received}`;
      return `${JSON.stringify({ id, receipt, body_sha256: createHash('sha256').update(body).digest('hex') })}\n`;
    })
    .join('');
}

/** Ends the receiver, which delivers what it has and finishes its files. */
async function ended(receiver: Serving): Promise<void> {
  await receiver.kill('SIGTERM');
}

const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout) as Record<string, unknown>;

test('whoever has the disk takes an event out and makes every hash good again: both commands name it', async () => {
  const { folder, config } = await configured();
  const receiver = await Receiver.start(config);
  const kept = await send(receiver, numbers(0, 40));
  const file = join(folder, 'kept.ndjson');
  const complete = join(folder, 'complete.ndjson');
  writeFileSync(file, keptLines(kept));
  await proofs(receiver, kept);
  const log = new URL('/receipts/', receiver.url).href;
  const verified = await millrace(['receipt', 'verify', file, '--log', log, '--out', complete, '--json']);
  expect([verified.code, json(verified)]).toMatchObject([0, { proven: 40, open: 0, false: 0 }]);
  await ended(receiver);
  const archive = join(folder, 'archive');
  const told = ['--config', config, '--receipts', file];
  expect(await prove(archive, told)).toMatchObject({
    code: 0,
    said: { events: 40, archived: 40, missing: [], false_heads: [] },
  });

  // The archive, written again by the program itself: all its hashes and signatures are good.
  const victim = kept[17]!;
  const data = filesBelow(archive).find(
    (name) => /\.ndjson(\.gz)?$/.test(name) && !name.includes('_manifest'),
  )!;
  const text = readMaybeGzipped(data);
  expect(text).toContain(victim.id);
  const lines = text.split('\n').filter((line) => line !== '' && !line.includes(victim.id));
  const forged = await temporaryFolder();
  writeFileSync(join(forged, 'forged.ndjson'), `${lines.join('\n')}\n`);
  expect(await prove(forged, told)).toMatchObject({
    code: 4,
    said: { archived: 39, missing: [victim.leaf], false_receipts: [] },
  });

  // And the log, made again without it, with the log's own key: the receipts that were completed name it.
  const pem = readFileSync(join(folder, 'erasure', 'receipts.key'), 'utf8');
  const signer = readSigner(ORIGIN, pem);
  const rewritten = join(forged, 'log');
  const writer = await LogWriter.open(rewritten, signer);
  writer.append(
    Buffer.concat(
      kept
        .filter((one) => one !== victim)
        .toSorted((a, b) => a.leaf - b.leaf)
        .map(entryByHand),
    ),
  );
  await writer.checkpoint();
  writer.close();
  const key = ['--key', verifierText(signer)];
  const hidden = await prove(forged, ['--log', rewritten, ...key, '--receipts', file]);
  expect(hidden).toMatchObject({ code: 4, said: { missing: [] } });
  const named = (hidden.said['false_receipts'] as { id: string }[]).map(({ id }) => id);
  expect(named).toContain(victim.id);
  // So do those of all others, once they are complete: the log that they are of was another one.
  const others = join(forged, 'others.ndjson');
  const lines2 = readFileSync(complete, 'utf8').split('\n');
  writeFileSync(others, lines2.filter((line) => line !== '' && !line.includes(victim.id)).join('\n'));
  const zeroed = join(forged, 'zeroed');
  const blank = await LogWriter.open(zeroed, signer);
  const entries = kept.toSorted((a, b) => a.leaf - b.leaf);
  blank.append(Buffer.concat(entries.map((one) => (one === victim ? Buffer.alloc(32) : entryByHand(one)))));
  await blank.checkpoint();
  blank.close();
  const fork = ['--log', zeroed, ...key];
  expect((await prove(forged, fork)).code).toBe(0);
  // The manifest has noted how the log ended: that one agrees with it, and one that was made again does not.
  const listed = await prove(archive, fork);
  expect(listed.code).toBe(4);
  const heads = listed.said['false_heads'] as { file: string; size: number }[];
  expect(heads.map(({ size }) => size > victim.leaf)).toContain(true);
  const contradicted = await prove(forged, [...fork, '--receipts', others]);
  expect([contradicted.code, (contradicted.said['false_receipts'] as object[]).length]).toEqual([4, 39]);
  const against = await millrace(['receipt', 'verify', others, '--log', zeroed, ...key, '--json']);
  expect([against.code, json(against)]).toMatchObject([4, { proven: 0, false: 39 }]);
  const offline = await millrace(['receipt', 'verify', complete, ...key, '--json']);
  expect([offline.code, json(offline)]).toMatchObject([0, { proven: 40 }]);
});

test('an erased user: the log stays as it was, the erasure accounts for the events, and nothing that is left confirms a guess', async () => {
  const { folder, config } = await configured();
  const receiver = await Receiver.start(config);
  const kept = await send(receiver, numbers(0, 30));
  await proofs(receiver, kept);
  await ended(receiver);
  const users = new Map(
    kept.map((one) => [one, (JSON.parse(one.body.toString()) as { user_id: string }).user_id]),
  );
  const victim = users.get(kept[0]!)!;
  const theirs = kept.filter((one) => users.get(one) === victim);
  const erased = await millrace(['erase', victim, '--now', '--config', config, '--json']);
  expect(erased.code, erased.stderr).toBe(0);
  expect(await prove(join(folder, 'archive'), ['--config', config])).toMatchObject({
    code: 0,
    said: { events: 30, archived: 30 - theirs.length, erased: theirs.length, missing: [] },
  });
  // Log, tiles, receipts, journal, archive: no salt, id or body of theirs, so no entry can be made again from a guess.
  const left = filesBelow(folder)
    .filter((name) => !name.endsWith('.key'))
    .map((name) => Buffer.from(readMaybeGzipped(name, 'latin1'), 'latin1'));
  for (const { id, salt } of theirs)
    for (const trace of [id, victim, salt, salt.toString('base64url'), salt.toString('hex')])
      expect(left.filter((bytes) => bytes.includes(trace))).toEqual([]);
  // The entries themselves are there, so the search is one that can find.
  for (const one of theirs) expect(left.some((bytes) => bytes.includes(entryByHand(one)))).toBe(true);
  // A user who is erased is answered with no receipt, and takes no place.
  const again = await Receiver.start(config);
  const back = await postSigned(again.url, theirs[0]!.body, { id: 'msg_made_up_back' });
  expect([back.status, back.headers['millrace-receipt']]).toEqual([202, undefined]);
  const other = kept.find((one) => !theirs.includes(one))!;
  const next = await postSigned(again.url, other.body, { id: 'msg_made_up_next' });
  expect(next.headers['millrace-receipt']).toContain('leaf=30,');
});

test('damaged hashes beside the entries of a log are called that, not a false log, and are made again', async () => {
  const { folder, config } = await configured();
  const receiver = await Receiver.start(config);
  const kept = await send(receiver, numbers(0, 300));
  const log = join(folder, 'receipts');
  const [file, complete] = [join(folder, 'kept.ndjson'), join(folder, 'complete.ndjson')];
  writeFileSync(file, keptLines(kept));
  const [{ key } = { key: '' }] = await proofs(receiver, kept.slice(-1));
  await ended(receiver);
  const verify = (from: string, ...more: string[]): ReturnType<typeof millrace> =>
    millrace(['receipt', 'verify', from, '--log', log, '--key', key, ...more]);
  expect((await verify(file, '--out', complete)).code).toBe(0);

  const hashes = join(log, 'hashes-1');
  const whole = readFileSync(hashes);
  const flipped = Buffer.from(whole);
  flipped[5] = flipped[5]! ^ 1;
  const damages: Readonly<Record<string, () => void>> = {
    flipped: () => writeFileSync(hashes, flipped),
    short: () => writeFileSync(hashes, whole.subarray(0, 7)),
    gone: () => rmSync(hashes),
  };
  for (const [damage, make] of Object.entries(damages)) {
    make();
    for (const from of [file, complete]) {
      const { code, stderr } = await verify(from);
      expect([damage, code, stderr]).toEqual([
        damage,
        1,
        expect.stringContaining('the hashes beside them are damaged'),
      ]);
    }
    // What is not in the log stays false, whatever the hashes are.
    const other = join(folder, 'other.ndjson');
    writeFileSync(other, keptLines([{ ...kept.at(-1)!, id: 'msg_made_up_other' }]));
    expect((await verify(other)).code).toBe(4);
    const again = await Receiver.start(config);
    await ended(again);
    expect(again.stderr).toContain('they were made again from its entries');
    expect([readFileSync(hashes), (await verify(complete)).code]).toEqual([whole, 0]);
  }
  // Entries are nothing that could be made again.
  const entries = readFileSync(join(log, 'entries'));
  entries[5] = entries[5]! ^ 1;
  writeFileSync(join(log, 'entries'), entries);
  expect((await verify(file)).code).toBe(4);
  rmSync(hashes);
  const refused = await millraceProcess(['serve', '--config', config]);
  expect([refused.code === 0, refused.stderr]).toEqual([
    false,
    expect.stringContaining('is not the log that its checkpoint is of'),
  ]);
});

const userOf = ({ body }: Kept): string => (JSON.parse(body.toString()) as { user_id: string }).user_id;
const unconfirmed = (ids: readonly Kept[], erasure: string): object[] =>
  ids.map(({ id }) => ({ id, erasure }));

test('an erasure that nobody has asked for, signed by whoever has the disk, does not account for an event of a sender', async () => {
  const { folder, config } = await configured();
  const receiver = await Receiver.start(config);
  const kept = await send(receiver, numbers(0, 20));
  await proofs(receiver, kept);
  await ended(receiver);
  const erased = await millrace(['erase', userOf(kept[0]!), '--now', '--config', config, '--json']);
  expect(erased.code, erased.stderr).toBe(0);
  const theirs = kept.filter((one) => userOf(one) === userOf(kept[0]!));
  const receipts = join(folder, 'erasure/receipts');
  const [real = ''] = readdirSync(receipts).map((name) => name.replace('.json', ''));

  // One more event goes, and a receipt is made for it with the key that lies beside the archive.
  const victim = kept.find((one) => !theirs.includes(one))!;
  const copy = await temporaryFolder();
  const archived = filesBelow(join(folder, 'archive')).filter((name) => /\.ndjson(\.gz)?$/.test(name));
  const lines = archived.flatMap((name) => readMaybeGzipped(name).trimEnd().split('\n'));
  writeFileSync(
    join(copy, 'copy.ndjson'),
    lines.filter((line) => !line.includes(victim.id)).join('\n') + '\n',
  );
  const signer = readManifestSigner(join(folder, 'erasure/manifest.key'))!;
  const model = JSON.parse(readFileSync(join(receipts, `${real}.json`), 'utf8')) as Record<string, unknown>;
  const { signed_by: _by, signature: _signature, ...plain } = model;
  const item = { store: 'archive', item: 'copy.ndjson', removed: 1, sha256_before: null, sha256_after: null };
  const entries = [entryByHand(victim).toString('base64')];
  const made = { ...plain, receipt: 'abcdef0123456789', records_removed: 1, items: [{ ...item, entries }] };
  const forged = signJson('receipt', JSON.stringify(made), signer);
  writeFileSync(join(receipts, 'abcdef0123456789.json'), forged);

  const file = join(folder, 'kept.ndjson');
  writeFileSync(file, keptLines(kept));
  const told = ['--config', config, '--receipts', file];
  const all = await prove(copy, told);
  expect([all.code, all.said['missing']]).toEqual([3, []]);
  expect(all.said['unconfirmed']).toEqual(
    expect.arrayContaining([...unconfirmed([victim], 'abcdef0123456789'), ...unconfirmed(theirs, real)]),
  );
  expect(await prove(copy, [...told, '--erasure', real])).toMatchObject({
    code: 3,
    said: { unconfirmed: unconfirmed([victim], 'abcdef0123456789') },
  });
  const text = await millrace(['archive', 'prove', copy, ...told, '--erasure', real]);
  expect(text.stdout).toContain(`erased     ${victim.id}: by erasure abcdef0123456789`);
  rmSync(join(receipts, 'abcdef0123456789.json'));
  expect(await prove(join(folder, 'archive'), [...told, '--erasure', real])).toMatchObject({
    code: 0,
    said: { unconfirmed: [], erased: theirs.length },
  });
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function readMaybeGzipped(path: string, encoding: BufferEncoding = 'utf8'): string {
  const bytes = readFileSync(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString(encoding);
}

test('an older copy of the log, or another one in its place, is refused; a new name begins a new log', async () => {
  const { folder, config } = await configured();
  const log = join(folder, 'receipts');
  const counted = async () => {
    const { code, stdout, stderr } = await millrace(['reconcile', '--config', config, '--json']);
    expect(stdout, stderr).not.toBe('');
    const report = JSON.parse(stdout) as {
      log: object | null;
      differences: { code: string; count: number }[];
    };
    return {
      exit: code,
      log: report.log,
      differences: report.differences.map((one) => [one.code, one.count]),
    };
  };
  let receiver: Serving = await Receiver.start(config);
  await proofs(receiver, await send(receiver, numbers(0, 20)));
  // The running receiver is asked for its journal.
  expect(await counted()).toMatchObject({ exit: 0, log: { size: 20, waiting: 0 } });
  await ended(receiver);
  cpSync(log, join(folder, 'older'), { recursive: true });
  cpSync(join(folder, 'journal'), join(folder, 'older-journal'), { recursive: true });
  receiver = await Receiver.start(config);
  await proofs(receiver, await send(receiver, numbers(20, 20)));
  await ended(receiver);
  const refused = async () => (await millraceProcess(['serve', '--config', config])).stderr;
  const none = { exit: 4, log: null };
  // It names the head that is signed, and both sides of the comparison are looked at.
  const [, size, root] = readFileSync(join(log, 'checkpoint'), 'utf8').split('\n');
  expect(await counted()).toEqual({
    exit: 0,
    log: { origin: ORIGIN, size: 40, root, waiting: 0 },
    differences: [],
  });
  expect(size).toBe('40');
  const journal = join(folder, 'journal');
  renameSync(journal, join(folder, 'newer-journal'));
  renameSync(join(folder, 'older-journal'), journal);
  expect((await counted()).differences).toContainEqual(['log', 20]);
  rmSync(journal, { recursive: true });
  renameSync(join(folder, 'newer-journal'), journal);
  const newest = readFileSync(join(log, 'entries'));
  writeFileSync(join(log, 'entries'), Buffer.from(newest).fill(1, 32, 33));
  expect(await counted()).toEqual({ ...none, differences: [['log', 1]] });
  rmSync(log, { recursive: true });
  expect(await counted()).toEqual({ ...none, differences: [['log', 1]] });
  cpSync(join(folder, 'older'), log, { recursive: true });
  expect(await counted()).toEqual({ ...none, differences: [['log', 20]] });
  expect(await refused()).toContain('it is an older copy');
  rmSync(join(log, 'checkpoint'));
  expect(await refused()).toContain('it is an older copy');
  rmSync(log, { recursive: true });
  expect(await refused()).toContain('it was removed or replaced');
  const settings = JSON.parse(readFileSync(config, 'utf8')) as { receipts: object };
  settings.receipts = {
    ...settings.receipts,
    origin: 'made-up.example/second',
    path: join(folder, 'second'),
  };
  writeFileSync(config, JSON.stringify(settings));
  receiver = await Receiver.start(config);
  const { body } = madeUpEvent(50);
  const next = await postSigned(receiver.url, body, { id: 'msg_made_up_second' });
  expect(next.headers['millrace-receipt']).toContain('log="made-up.example/second", leaf=0,');
});

test('a line whose time is no time is named by what is missing, and does not hold up an erasure', async () => {
  const { folder, config } = await configured({
    sinks: { archive: { type: 'files', path: '', compress: 'none' } },
  });
  const settings = JSON.parse(readFileSync(config, 'utf8')) as { sinks: { archive: { path: string } } };
  settings.sinks.archive.path = join(folder, 'archive');
  writeFileSync(config, JSON.stringify(settings));
  const receiver = await Receiver.start(config);
  const kept = await send(receiver, numbers(0, 10));
  await proofs(receiver, kept);
  await ended(receiver);
  const [victim] = kept as [Kept];
  const file = filesBelow(join(folder, 'archive')).find(
    (name) => name.endsWith('.ndjson') && !name.includes('_manifest'),
  )!;
  const lines = readFileSync(file, 'utf8').split('\n');
  for (const time of ['x', '1960-01-01T00:00:00.000Z']) {
    const changed = lines.map((line) =>
      line.includes(victim.id) ? line.replace(/"received_at":"[^"]+"/, `"received_at":"${time}"`) : line,
    );
    writeFileSync(file, changed.join('\n'));
    const proved = await prove(join(folder, 'archive'), ['--config', config]);
    expect(proved).toMatchObject({ code: 4, said: { archived: 9, missing: [victim.leaf] } });
  }
  const user = (JSON.parse(victim.body.toString()) as { user_id: string }).user_id;
  const erased = await millrace(['erase', user, '--now', '--config', config, '--json']);
  expect(erased.stderr).not.toContain('BigInt');
  expect(readFileSync(file, 'utf8')).not.toContain(user);
});
