import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { entryOfAnswer } from '../receipts/entry-by-hand.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const userOf = (n: number): string => `00000000-0000-4000-8000-${String(3000 + n).padStart(12, '0')}`;

/** Without a team it is quarantined. */
function bodyOf(user: number, isFit = true): Buffer {
  const { team_id: team, ...rest } = JSON.parse(
    madeUpEvent(0, 'daily.data.meal.created').body.toString(),
  ) as Record<string, unknown>;
  const event = { ...rest, user_id: userOf(user), client_user_id: null };
  return Buffer.from(JSON.stringify(isFit ? { ...event, team_id: team } : event));
}

/** @returns the entry that it is promised */
async function post(receiver: Serving, id: string, body: Buffer): Promise<string> {
  const { status, headers } = await postSigned(receiver.url, body, { id });
  expect(status).toBe(202);
  return entryOfAnswer({ id, body }, String(headers['millrace-receipt']));
}

/** A receiver with an archive, which can be made to refuse what it gets. */
async function scene(more: Readonly<Record<string, object>> = {}) {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const receipts = { path: join(folder, 'receipts'), origin: 'made-up.example/aside', interval: '50ms' };
  const all: Record<string, object> = {
    receipts,
    delivery: { retryInitial: '50ms', retryMax: '100ms' },
    ...more,
  };
  const config = writeConfig(folder, all);
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await millrace([...args, '--config', config, '--json']);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return { code, stderr, said: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
  };
  const prove = async () => {
    const { code, said } = await run('archive', 'prove', archive);
    return { code, ...said[0] };
  };
  const reconcile = async () => {
    const { code, stdout } = await millrace(['reconcile', '--config', config, '--json']);
    return { code, differences: (JSON.parse(stdout) as Record<string, unknown>)['differences'] };
  };
  const deadLetters = async (n: number): Promise<readonly string[]> => {
    let keys: string[] = [];
    await until(`${n} dead letters`, async () => {
      const { said } = await run('dead-letters', 'list');
      keys = said.map(({ key }) => String(key));
      return keys.length >= n;
    });
    return keys;
  };
  /** A file in the folder's place refuses what comes. */
  const block = (): void => {
    renameSync(archive, `${archive}.away`);
    writeFileSync(archive, '');
  };
  const unblock = (): void => {
    rmSync(archive);
    renameSync(`${archive}.away`, archive);
  };
  const erased = (): string[] =>
    readdirSync(join(folder, 'erasure', 'receipts')).flatMap((name) => {
      const text = readFileSync(join(folder, 'erasure', 'receipts', name), 'utf8');
      const { items } = JSON.parse(text) as { items: { entries?: string[] }[] };
      return items.flatMap(({ entries = [] }) => entries);
    });
  mkdirSync(archive, { recursive: true });
  return { folder, archive, config, all, run, prove, reconcile, deadLetters, block, unblock, erased };
}

test('an erasure of what is in quarantine alone names its entries', async () => {
  const { config, run, prove, erased } = await scene();
  const receiver = await Receiver.start(config);
  await post(receiver, 'good', bodyOf(1));
  const theirs = [
    await post(receiver, 'bad1', bodyOf(2, false)),
    await post(receiver, 'bad2', bodyOf(2, false)),
  ];
  expect(await run('erase', userOf(2), '--now')).toMatchObject({ code: 0 });
  expect(erased().toSorted()).toEqual(theirs.toSorted());
  await receiver.kill('SIGTERM');
  expect(await prove()).toMatchObject({ code: 0, archived: 1, erased: 2, missing: [] });
});

test('a dead letter that was dropped stays explained, whatever its sink is called later, and explains no other archive', async () => {
  const { folder, archive, config, all, run, prove, reconcile, deadLetters, block, unblock } = await scene({
    delivery: { retryInitial: '50ms', retryMax: '100ms', giveUpAfter: '300ms' },
  });
  let receiver: Serving = await Receiver.start(config);
  await post(receiver, 'e0', bodyOf(1));
  await receiver.drained();
  await run('flush');
  block();
  await post(receiver, 'e1', bodyOf(1));
  const [key = ''] = await deadLetters(1);
  expect(await run('dead-letters', 'drop', key)).toMatchObject({ said: [{ dropped: 1 }] });
  unblock();
  await receiver.kill('SIGTERM');
  const explained = { code: 0, archived: 1, dropped: 1, unclear: [], missing: [] };
  expect(await prove()).toMatchObject(explained);
  // Renamed twice, and what it continued for is taken out of the config again.
  for (const [name, continues] of [
    ['lake', 'archive'],
    ['lake', undefined],
    ['pond', 'lake'],
    ['pond', undefined],
  ] as const) {
    const sink = { type: 'files', path: archive, ...(continues === undefined ? {} : { continues }) };
    writeConfig(folder, { ...all, sinks: { [name]: sink }, routes: [{ match: '*', to: [name] }] });
    receiver = await Receiver.start(config);
    await receiver.kill('SIGTERM');
    expect([name, continues, await prove()]).toEqual([name, continues, expect.objectContaining(explained)]);
    expect(await reconcile()).toEqual({ code: 0, differences: [] });
  }
  // Another archive under the name of then: its sink did not drop it.
  const other = join(folder, 'other');
  renameSync(archive, other);
  const sinks = { archive: { type: 'files', path: other } };
  writeConfig(folder, { ...all, sinks, routes: [{ match: '*', to: ['archive'] }] });
  const { code, said } = await run('archive', 'prove', other);
  expect({ code, ...said[0] }).toMatchObject({ code: 3, dropped: 0, unclear: [1], missing: [] });
});
