import { generateKeyPairSync, sign } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hashedColumns } from '../../src/journal/schema.ts';
import { editDatabase } from '../support/journal-files.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { entryOfAnswer } from '../receipts/entry-by-hand.ts';
import { prove as proveArchive } from '../receipts/prove.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const ORIGIN = 'made-up.example/events';
const userOf = (n: number): string => `00000000-0000-4000-8000-${String(2000 + n).padStart(12, '0')}`;

interface Kept {
  readonly id: string;
  readonly body: Buffer;
  readonly receipt: string;
  readonly status: string;
}

/** Without a team it is quarantined. */
function bodyOf(user: number, isFit = true, n = 0): Buffer {
  const { team_id: team, ...rest } = JSON.parse(
    madeUpEvent(n, 'daily.data.meal.created').body.toString(),
  ) as Record<string, unknown>;
  const event = { ...rest, user_id: userOf(user), client_user_id: null, n };
  return Buffer.from(JSON.stringify(isFit ? { ...event, team_id: team } : event));
}

async function post(receiver: Serving, id: string, body: Buffer): Promise<Kept> {
  const { status, headers, json } = await postSigned(receiver.url, body, { id });
  expect(status).toBe(202);
  const receipt = String(headers['millrace-receipt'] ?? '');
  expect(receipt).toMatch(/^log="made-up\.example\/events", leaf=\d+, salt="[\w-]{22}", received=\d+$/);
  return { id, body, receipt, status: String(json['status']) };
}

const entryOf = (kept: Kept): string => entryOfAnswer(kept, kept.receipt);
const leafOf = ({ receipt }: Kept): number => Number(/leaf=(\d+)/.exec(receipt)?.[1]);

async function scene(more: Readonly<Record<string, object>> = {}) {
  const folder = await temporaryFolder();
  const receipts = { path: join(folder, 'receipts'), origin: ORIGIN, interval: '50ms' };
  const config = writeConfig(folder, { receipts, ...more });
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await millrace([...args, '--config', config, '--json']);
    // A list is an object on each line.
    const lines = stdout.split('\n').filter((line) => line !== '');
    const isList = args[1] === 'list';
    const said: unknown = isList ? lines.map((line) => JSON.parse(line) as unknown) : JSON.parse(stdout);
    return { code, stderr, said };
  };
  const prove = async (...others: string[]) => {
    const { said, ...ended } = await proveArchive(join(folder, 'archive'), ['--config', config, ...others]);
    return { ...ended, ...said };
  };
  const keys = async (): Promise<Map<string, string>> => {
    const { said } = await run('quarantine', 'list');
    return new Map((said as { id: string; key: number }[]).map(({ id, key }) => [id, String(key)]));
  };
  return { folder, config, run, prove, keys };
}

/** Every receipt is proven by the log. */
async function verified(folder: string, log: string, all: readonly Kept[]): Promise<void> {
  const file = join(folder, 'kept.ndjson');
  const lines = all.map(({ id, body, receipt }) =>
    JSON.stringify({ id, receipt, body_base64: body.toString('base64') }),
  );
  writeFileSync(file, `${lines.join('\n')}\n`);
  await until('all to be in the log', async () => {
    const { stdout } = await millrace(['receipt', 'verify', file, '--log', log, '--json']);
    const { open, false: wrong } = JSON.parse(stdout) as { open: number; false: number };
    expect(wrong).toBe(0);
    return open === 0;
  });
}

test('what is quarantined has a receipt, and is accounted for whatever becomes of it', async () => {
  const { folder, config, run, prove, keys } = await scene();
  let receiver: Serving = await ReceiverProcess.start(config);
  const all: Kept[] = [];
  for (let n = 0; n < 6; n += 1) {
    all.push(await post(receiver, `good${n}`, bodyOf(n)));
    all.push(await post(receiver, `bad${n}`, bodyOf(n, false)));
  }
  all.push(await post(receiver, 'good0', bodyOf(0, true, 1)));
  expect(all.filter(({ status }) => status === 'quarantined')).toHaveLength(7);
  expect(all.map(leafOf)).toEqual(all.map((_, n) => n));
  // At once, in the commits of others.
  all.push(
    ...(await Promise.all(
      Array.from({ length: 60 }, (_, n) => post(receiver, `m${n}`, bodyOf(n % 6, n % 3 !== 0))),
    )),
  );
  await receiver.kill('SIGKILL');
  receiver = await Receiver.start(config);
  const log = new URL('/receipts/', receiver.url).href;
  await verified(folder, log, all);
  const { body: bad1 } = all.find(({ id }) => id === 'bad1')!;
  const again = await postSigned(receiver.url, bad1, { id: 'bad1' });
  expect([again.status, again.headers['millrace-receipt']]).toEqual([200, undefined]);

  const known = await keys();
  expect((await run('quarantine', 'retry', known.get('good0')!)).said).toMatchObject({ retried: 1 });
  expect((await run('quarantine', 'drop', known.get('bad1')!)).said).toMatchObject({ dropped: 1 });
  await receiver.kill('SIGTERM');
  expect((await run('quarantine', 'drop', known.get('bad2')!)).said).toMatchObject({ dropped: 1 });
  const erased = await run('erase', userOf(3), '--now');
  expect(erased.code, erased.stderr).toBe(0);
  const theirs = all.filter(({ body }) => body.includes(userOf(3)));
  const [receipt] = (erased.said as { receipts: { receipt: string; items: { entries?: string[] }[] }[] })
    .receipts;
  const named = new Set(receipt!.items.flatMap(({ entries = [] }) => entries));
  expect([...named].toSorted()).toEqual(theirs.map(entryOf).toSorted());
  const proof = join(folder, 'erasure', 'receipts', `${receipt!.receipt}.json`);
  expect(await run('erase', 'verify', proof, '--archive', join(folder, 'archive'))).toMatchObject({
    code: 0,
    said: { entries: theirs.length, proven: theirs.length, differences: [] },
  });

  const quarantined = all.filter(({ status }) => status === 'quarantined').length;
  const theirBad = theirs.filter(({ status }) => status === 'quarantined').length;
  const accounted = {
    missing: [],
    dropped: 2,
    dead: 0,
    quarantined: quarantined - theirBad - 3,
    erased: theirs.length,
    archived: all.length - quarantined - (theirs.length - theirBad) + 1,
  };
  expect(await prove()).toMatchObject({ code: 0, ...accounted });
  receiver = await Receiver.start(config);
  expect(await prove()).toMatchObject({ code: 0, ...accounted });
  expect((await run('reconcile')).said).toMatchObject({ differences: [] });
  await receiver.kill('SIGTERM');
  const { said: audit } = await run('audit', 'list', '--id', 'bad1');
  expect(audit).toContainEqual(expect.objectContaining({ action: 'drop', what: 'quarantine' }));
});

test('who has the disk and not the key cannot say that a person dropped what is gone', async () => {
  const { folder, config, run, prove, keys } = await scene();
  const receiver = await Receiver.start(config);
  const all = [
    await post(receiver, 'bad0', bodyOf(0, false)),
    await post(receiver, 'bad1', bodyOf(1, false)),
  ];
  await run('quarantine', 'drop', (await keys()).get('bad1')!);
  await receiver.kill('SIGTERM');
  expect(await prove()).toMatchObject({ code: 0, quarantined: 1, dropped: 1, missing: [] });

  editDatabase(join(folder, 'journal'), (db) => db.exec(`DELETE FROM quarantine WHERE id = 'bad0'`));
  expect(await prove()).toMatchObject({ code: 4, missing: [leafOf(all[0]!)] });
  const file = join(folder, 'erasure', 'dropped.jsonl');
  const [line = ''] = readFileSync(file, 'utf8').split('\n');
  appendFileSync(file, `${line.replace(entryOf(all[1]!), entryOf(all[0]!))}\n`);
  // Signed well, by another key.
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const said = JSON.stringify({
    at: new Date().toISOString(),
    from: 'quarantine',
    entries: [entryOf(all[0]!)],
  });
  const text = `${said.slice(0, -1)},"signed_by":"${publicKey.export({ format: 'jwk' }).x}"`;
  const signature = sign(null, Buffer.from(`millrace dropped 1\n${text}`), privateKey).toString('base64url');
  appendFileSync(file, `${text},"signature":"${signature}"}\n`);
  expect(await prove()).toMatchObject({ code: 4, dropped: 1, missing: [leafOf(all[0]!)] });
});

test('a quarantine from before has no entries: nothing is claimed of it, also when it is erased, dropped or retried', async () => {
  const { folder, config, run, prove, keys } = await scene();
  let receiver: Serving = await Receiver.start(config);
  const good = await post(receiver, 'good', bodyOf(0));
  await post(receiver, 'bad0', bodyOf(0, false));
  await receiver.kill('SIGTERM');
  // As an earlier program has left it, or a crash between the two: in quarantine, with a salt, and without an entry.
  const columns = 'reasons, id, source, type, team, user, client_user, received_at, headers, handling, body';
  editDatabase(join(folder, 'journal'), (db) => {
    for (const id of ['old0', 'old1']) {
      const copied = columns.replace('id', `'${id}'`);
      db.exec(
        `INSERT INTO quarantine (${columns}, crc)
         SELECT ${copied}, row_hash(${copied}) FROM quarantine WHERE id = 'bad0'`,
      );
    }
  });
  receiver = await Receiver.start(config);
  expect((await run('quarantine', 'drop', (await keys()).get('old1')!)).said).toMatchObject({ dropped: 1 });
  expect(existsSync(join(folder, 'erasure', 'dropped.jsonl'))).toBe(false);
  const erased = await run('erase', userOf(0), '--now');
  expect(erased.code, erased.stderr).toBe(0);
  const [name = ''] = readdirSync(join(folder, 'erasure', 'receipts'));
  const receipt = join(folder, 'erasure', 'receipts', name);
  expect(await run('erase', 'verify', receipt)).toMatchObject({ code: 0, said: { entries: 2, proven: 2 } });
  await receiver.kill('SIGTERM');
  expect(await prove()).toMatchObject({ code: 0, erased: 2, missing: [] });
  expect(good.receipt).not.toBe('');
});

test('without the journal at hand what is in quarantine is named as missing, with a word why', async () => {
  const { folder, config, prove } = await scene();
  const receiver = await Receiver.start(config);
  const bad = await post(receiver, 'bad', bodyOf(0, false));
  await receiver.kill('SIGTERM');
  const elsewhere = await temporaryFolder();
  for (const name of ['receipts', 'archive', 'erasure'])
    if (existsSync(join(folder, name)))
      cpSync(join(folder, name), join(elsewhere, name), { recursive: true });
  const settings = JSON.parse(readFileSync(config, 'utf8').replaceAll(folder, elsewhere)) as object;
  const copy = join(elsewhere, 'copy.yaml');
  writeFileSync(copy, JSON.stringify(settings));
  const moved = await proveArchive(join(elsewhere, 'archive'), ['--config', copy]);
  expect(moved).toMatchObject({ code: 4, said: { missing: [leafOf(bad)] } });
  expect(moved.stderr).toContain('is not found');
  expect(await prove()).toMatchObject({ code: 0, quarantined: 1 });
});

/** The lines of these ids are taken out of every file of an archive. */
function cut(archive: string, ids: readonly string[]): void {
  for (const name of readdirSync(archive, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ndjson')) continue;
    const file = join(archive, name);
    const lines = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, lines.filter((line) => !ids.some((id) => line.includes(`"id":"${id}"`))).join('\n'));
  }
}

test('a dead letter explains what is missing in the archive of its own sink, and in no other', async () => {
  const target = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(400).end());
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void target.close());
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  const base = await temporaryFolder();
  const archive = join(base, 'archive');
  const { folder, config, run, prove } = await scene({
    sinks: {
      archive: { type: 'files', path: archive, compress: 'none' },
      hooks: { type: 'http', url, secrets: [SECRET], privateNetworks: ['127.0.0.0/8'] },
    },
    routes: [{ match: '*', to: ['archive', 'hooks'] }],
  });
  symlinkSync(archive, join(folder, 'archive'));
  const receiver = await Receiver.start(config);
  for (let n = 0; n < 4; n += 1) await post(receiver, `e${n}`, bodyOf(n));
  let keys = new Map<string, string>();
  await until('all to be dead letters of the target', async () => {
    const { said } = await run('dead-letters', 'list');
    keys = new Map((said as { id: string; key: number }[]).map(({ id, key }) => [id, String(key)]));
    return keys.size === 4;
  });
  expect((await run('dead-letters', 'drop', keys.get('e0')!)).said).toMatchObject({ dropped: 1 });
  await receiver.kill('SIGTERM');
  expect(await prove()).toMatchObject({ code: 0, archived: 4, dead: 0, dropped: 0, missing: [] });

  cut(archive, ['e0', 'e1']);
  expect(await prove()).toMatchObject({ code: 4, dead: 0, dropped: 0, unclear: [], missing: [0, 1] });

  // The letters of the archive's sink.
  const hashed = hashedColumns('dead_letters').replace('sink', `'archive'`);
  editDatabase(join(folder, 'journal'), (db) =>
    db.exec(`UPDATE dead_letters SET sink = 'archive', crc = row_hash(${hashed})`),
  );
  cut(archive, ['e2', 'e3']);
  for (const id of ['e2', 'e3'])
    expect((await run('dead-letters', 'drop', keys.get(id)!)).said).toMatchObject({ dropped: 1 });
  expect(await prove()).toMatchObject({ code: 4, dead: 1, dropped: 2, unclear: [], missing: [0] });
  // As a crash leaves it before the drop, or right after it.
  const notes = join(folder, 'erasure', 'dropped.jsonl');
  writeFileSync(notes, readFileSync(notes, 'utf8').replace(/[^\n]+\n$/, ''));
  expect(await prove()).toMatchObject({ code: 4, dead: 1, dropped: 1, unclear: [3], missing: [0] });
  // The other archive may have had what is a letter of the first.
  const other = join(base, 'other');
  cpSync(archive, other, { recursive: true });
  const both = await prove(other);
  expect(both).toMatchObject({ code: 4, dead: 0, dropped: 0, unclear: [1, 2, 3], missing: [0] });
  expect(both.stderr).toContain('dead letters do not explain');
});
