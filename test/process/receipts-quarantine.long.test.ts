import { generateKeyPairSync, sign } from 'node:crypto';
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hashedColumns } from '../../src/journal/schema.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { prove } from '../privacy/receipts/prove.ts';
import { temporaryFolder } from '../support/folders.ts';
import { editDatabase } from '../support/journal-files.ts';
import { millrace } from '../support/millrace.ts';
import type { Place } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';
import {
  bodyOf,
  entryOf,
  filesBelow,
  linesOf,
  post,
  proved,
  receiptsPlace,
  userOf,
} from './receipts-scene.ts';

const proves = (place: Place, ...more: string[]) => proved(place, place.at('archive'), { more });

/** Keys of what waits in quarantine, or of dead letters, by id. */
async function keysOf(place: Place, box = 'quarantine'): Promise<Map<string, string>> {
  const found = (await place.documents(box, 'list')) as { id: string; key: number }[];
  return new Map(found.map(({ id, key }) => [id, String(key)]));
}

const isBad = ({ status }: { readonly status: string }): boolean => status === 'quarantined';

test('what is quarantined has a receipt, and is accounted for whatever becomes of it', async () => {
  const place = await receiptsPlace();
  let receiver: Serving = await place.startProcess();
  const all = [];
  for (let n = 0; n < 6; n += 1)
    all.push(await post(receiver, `good${n}`, bodyOf(n)), await post(receiver, `bad${n}`, bodyOf(n, false)));
  all.push(await post(receiver, 'good0', bodyOf(0, true, 1)));
  expect(all.filter(isBad)).toHaveLength(7);
  expect(all.map(({ leaf }) => leaf)).toEqual(all.map((_, n) => n));
  // At once, in the commits of others.
  const others = Array.from({ length: 60 }, (_, n) => post(receiver, `m${n}`, bodyOf(n % 6, n % 3 !== 0)));
  all.push(...(await Promise.all(others)));
  await receiver.kill('SIGKILL');
  receiver = await place.start();
  const file = place.at('kept.ndjson');
  writeFileSync(file, linesOf(all));
  const log = new URL('/receipts/', receiver.url).href;
  await until('all to be in the log', async () => {
    const { stdout } = await millrace(['receipt', 'verify', file, '--log', log, '--json']);
    const { open, false: wrong } = JSON.parse(stdout);
    expect(wrong).toBe(0);
    return open === 0;
  });
  const { body } = all.find(({ id }) => id === 'bad1')!;
  const again = await receiver.post(body, { id: 'bad1' });
  expect([again.status, again.headers['millrace-receipt']]).toEqual([200, undefined]);

  const known = await keysOf(place);
  expect(await place.json('quarantine', 'retry', known.get('good0')!)).toMatchObject({ retried: 1 });
  expect(await place.json('quarantine', 'drop', known.get('bad1')!)).toMatchObject({ dropped: 1 });
  await receiver.stop();
  expect(await place.json('quarantine', 'drop', known.get('bad2')!)).toMatchObject({ dropped: 1 });
  const { code, receipts } = await place.json('erase', userOf(3), '--now');
  expect(code).toBe(0);
  const theirs = all.filter(({ user }) => user === userOf(3));
  const items = receipts[0].items as { entries?: string[] }[];
  const named = new Set(items.flatMap(({ entries = [] }) => entries));
  expect([...named].toSorted()).toEqual(theirs.map(entryOf).toSorted());
  const receipt = place.at('erasure', 'receipts', `${receipts[0].receipt}.json`);
  const proof = { code: 0, entries: theirs.length, proven: theirs.length, differences: [] };
  expect(await place.json('erase', 'verify', receipt, '--archive', place.at('archive'))).toMatchObject(proof);

  const [bad, theirBad] = [all.filter(isBad).length, theirs.filter(isBad).length];
  const accounted = {
    code: 0,
    missing: [],
    dropped: 2,
    dead: 0,
    quarantined: bad - theirBad - 3,
    erased: theirs.length,
    archived: all.length - bad - (theirs.length - theirBad) + 1,
  };
  expect(await proves(place)).toMatchObject(accounted);
  receiver = await place.start();
  expect(await proves(place)).toMatchObject(accounted);
  expect(await place.json('reconcile')).toMatchObject({ differences: [] });
  await receiver.stop();
  expect(await place.documents('audit', 'list', '--id', 'bad1')).toContainEqual(
    expect.objectContaining({ action: 'drop', what: 'quarantine' }),
  );
});

test('who has the disk and not the key cannot say that a person dropped what is gone', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const [lost, dropped] = [
    await post(receiver, 'bad0', bodyOf(0, false)),
    await post(receiver, 'bad1', bodyOf(1, false)),
  ];
  await place.ok('quarantine', 'drop', (await keysOf(place)).get('bad1')!);
  await receiver.stop();
  expect(await proves(place)).toMatchObject({ code: 0, quarantined: 1, dropped: 1, missing: [] });

  editDatabase(place.at('journal'), (db) => db.exec(`DELETE FROM quarantine WHERE id = 'bad0'`));
  expect(await proves(place)).toMatchObject({ code: 4, missing: [lost.leaf] });
  const file = place.at('erasure', 'dropped.jsonl');
  const [line = ''] = readFileSync(file, 'utf8').split('\n');
  appendFileSync(file, `${line.replace(entryOf(dropped), entryOf(lost))}\n`);
  // Signed well, by another key.
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const said = JSON.stringify({ at: new Date().toISOString(), from: 'quarantine', entries: [entryOf(lost)] });
  const text = `${said.slice(0, -1)},"signed_by":"${publicKey.export({ format: 'jwk' }).x}"`;
  const signature = sign(null, Buffer.from(`millrace dropped 1\n${text}`), privateKey).toString('base64url');
  appendFileSync(file, `${text},"signature":"${signature}"}\n`);
  expect(await proves(place)).toMatchObject({ code: 4, dropped: 1, missing: [lost.leaf] });
});

test('a quarantine from before has no entries: nothing is claimed of it, also when it is erased, dropped or retried', async () => {
  const place = await receiptsPlace();
  let receiver: Serving = await place.start();
  await post(receiver, 'good', bodyOf(0));
  await post(receiver, 'bad0', bodyOf(0, false));
  await receiver.stop();
  // As an earlier program has left it, or a crash between the two: in quarantine, with a salt, and without an entry.
  const columns = 'reasons, id, source, type, team, user, client_user, received_at, headers, handling, body';
  editDatabase(place.at('journal'), (db) => {
    for (const id of ['old0', 'old1']) {
      const copied = columns.replace('id', `'${id}'`);
      db.exec(
        `INSERT INTO quarantine (${columns}, crc)
         SELECT ${copied}, row_hash(${copied}) FROM quarantine WHERE id = 'bad0'`,
      );
    }
  });
  receiver = await place.start();
  const old = (await keysOf(place)).get('old1')!;
  expect(await place.json('quarantine', 'drop', old)).toMatchObject({ dropped: 1 });
  expect(existsSync(place.at('erasure', 'dropped.jsonl'))).toBe(false);
  await place.ok('erase', userOf(0), '--now');
  const [name = ''] = readdirSync(place.at('erasure', 'receipts'));
  const receipt = place.at('erasure', 'receipts', name);
  expect(await place.json('erase', 'verify', receipt)).toMatchObject({ code: 0, entries: 2, proven: 2 });
  await receiver.stop();
  expect(await proves(place)).toMatchObject({ code: 0, erased: 2, missing: [] });
});

test('without the journal at hand what is in quarantine is named as missing, with a word why', async () => {
  const place = await receiptsPlace();
  const receiver = await place.start();
  const bad = await post(receiver, 'bad', bodyOf(0, false));
  await receiver.stop();
  const elsewhere = await temporaryFolder();
  for (const name of ['receipts', 'archive', 'erasure'].filter((one) => existsSync(place.at(one))))
    cpSync(place.at(name), join(elsewhere, name), { recursive: true });
  const copy = join(elsewhere, 'copy.yaml');
  writeFileSync(copy, readFileSync(place.config, 'utf8').replaceAll(place.folder, elsewhere));
  const moved = await prove(join(elsewhere, 'archive'), ['--config', copy]);
  expect(moved).toMatchObject({ code: 4, said: { missing: [bad.leaf] } });
  expect(moved.stderr).toContain('quarantine and dead letters were not searched');
  expect(await proves(place)).toMatchObject({ code: 0, quarantined: 1 });
});

/** The lines of these ids are taken out of every file of an archive. */
function cut(archive: string, ids: readonly string[]): void {
  for (const file of filesBelow(archive).filter((name) => name.endsWith('.ndjson'))) {
    const lines = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, lines.filter((line) => !ids.some((id) => line.includes(`"id":"${id}"`))).join('\n'));
  }
}

test('a dead letter explains what is missing in the archive of its own sink, and in no other', async () => {
  const target = await startEndpoint();
  target.reply = () => 400;
  const hooks = { type: 'http', url: target.url('/'), sign: 'none', privateNetworks: ['127.0.0.0/8'] };
  const place = await receiptsPlace((folder) => ({
    sinks: { archive: { type: 'files', path: join(folder, 'archive'), compress: 'none' }, hooks },
  }));
  const archive = place.at('archive');
  const receiver = await place.start();
  for (let n = 0; n < 4; n += 1) await post(receiver, `e${n}`, bodyOf(n));
  const keys = await until('all to be dead letters of the target', async () => {
    const found = await keysOf(place, 'dead-letters');
    return found.size === 4 && found;
  });
  const drop = async (id: string): Promise<void> =>
    expect(await place.json('dead-letters', 'drop', keys.get(id)!)).toMatchObject({ dropped: 1 });
  await drop('e0');
  await receiver.stop();
  expect(await proves(place)).toMatchObject({ code: 0, archived: 4, dead: 0, dropped: 0, missing: [] });

  cut(archive, ['e0', 'e1']);
  expect(await proves(place)).toMatchObject({ code: 4, dead: 0, dropped: 0, unclear: [], missing: [0, 1] });

  // The dead letters of the archive's sink.
  const hashed = hashedColumns('dead_letters').replace('sink', `'archive'`);
  editDatabase(place.at('journal'), (db) =>
    db.exec(`UPDATE dead_letters SET sink = 'archive', crc = row_hash(${hashed})`),
  );
  cut(archive, ['e2', 'e3']);
  for (const id of ['e2', 'e3']) await drop(id);
  expect(await proves(place)).toMatchObject({ code: 4, dead: 1, dropped: 2, unclear: [], missing: [0] });
  // As a crash leaves it before the drop, or right after it.
  const notes = place.at('erasure', 'dropped.jsonl');
  writeFileSync(notes, readFileSync(notes, 'utf8').replace(/[^\n]+\n$/, ''));
  expect(await proves(place)).toMatchObject({ code: 4, dead: 1, dropped: 1, unclear: [3], missing: [0] });
  // The other archive may have had what is a dead letter of the first.
  const other = place.at('other');
  cpSync(archive, other, { recursive: true });
  const both = await proves(place, other);
  expect(both).toMatchObject({ code: 4, dead: 0, dropped: 0, unclear: [1, 2, 3], missing: [0] });
  expect(both.stderr).toContain('dead letters do not explain');
});
