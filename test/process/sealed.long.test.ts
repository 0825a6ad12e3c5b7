import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readArchive } from '../../src/archive/read.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { KeyStore } from '../../src/seal/key-store.ts';
import { parseMasterKey } from '../../src/seal/master-key.ts';
import { fillJournal } from '../bench/ingest/fill.ts';
import { forgedMark } from '../seal/support.ts';
import { OpensSealed } from '../seal/open-sealed.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';
import { until } from '../support/until.ts';

const MASTER = `mrk_${Buffer.alloc(32, 5).toString('base64')}`;
const env = { MILLRACE_MASTER_KEY: MASTER };

interface Place {
  readonly config: string;
  readonly archive: string;
  readonly store: string;
}

async function place(): Promise<Place> {
  const folder = await temporaryFolder();
  return { ...placeIn(folder), archive: join(folder, 'archive'), store: join(folder, 'keys') };
}

/** @param options more of the sink's */
function placeIn(folder: string, options: object = {}): { config: string } {
  const encrypt = { store: join(folder, 'keys'), masterKey: '${MILLRACE_MASTER_KEY}' };
  const config = writeConfig(folder, {
    sinks: { archive: { type: 'files', path: join(folder, 'archive'), encrypt, ...options } },
    erasure: { path: join(folder, 'erasure') },
  });
  return { config };
}

/** Sends made-up events of different users and returns their ids by user. */
async function send(receiver: Serving, count: number): Promise<Map<string, string>> {
  const sent = new Map<string, string>();
  for (let n = 0; n < count; n += 1) {
    const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    sent.set((JSON.parse(body.toString()) as { user_id: string }).user_id, id);
  }
  return sent;
}

async function opened({ archive, store }: Place): Promise<string[]> {
  const opener = await KeyStore.read(store, parseMasterKey(MASTER));
  const found: string[] = [];
  for await (const item of readArchive(archive, { opener, parts: true })) {
    found.push(item.kind === 'record' ? item.record.id : (item.sealed?.why ?? item.reason));
  }
  return found.toSorted();
}

/** Lines of the closed files, of all of them. */
function linesIn(archive: string): string[] {
  const files = readdirSync(archive, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ndjson.gz'),
  );
  return files.flatMap((name) =>
    gunzipSync(readFileSync(join(archive, name)))
      .toString()
      .split('\n')
      .slice(0, -1),
  );
}

describe('a receiver with a sealed archive', () => {
  it('killed with -9 in the middle, it has sealed every event it acknowledged, once', async () => {
    const where = await place();
    const first = await ReceiverProcess.start(where.config, { env });
    const sent = await send(first, 20);
    await first.kill('SIGKILL');
    const second = await Receiver.start(where.config, { env });
    await second.drained();
    await second.kill('SIGTERM');
    expect(await opened(where)).toEqual([...sent.values()].toSorted());
    expect(await verifyArchive(where.archive)).toMatchObject({ records: 20, differences: [] });
    await expect(readBack(where.archive)).rejects.toThrow('the keys that open it were not given');
  });

  it.each(['running', 'stopped'])(
    '%s: an erasure destroys the user’s keys, and the receipt says so',
    async (how) => {
      const where = await place();
      const receiver = await Receiver.start(where.config, { env });
      const sent = await send(receiver, 6);
      const [user = '', id = ''] = [...sent][2] ?? [];
      await receiver.drained();
      if (how === 'stopped') await receiver.kill('SIGTERM');
      const erase = await millrace(['erase', user, '--now', '--json', '--config', where.config], { env });
      expect([erase.code, erase.stdout]).toEqual([0, expect.stringContaining('keys of archive')]);
      if (how === 'running') await receiver.kill('SIGTERM');
      const expected = [...sent.values()].map((each) => (each === id ? 'erased' : each)).toSorted();
      expect(await opened(where)).toEqual(expected);
    },
  );

  it.skipIf(lacksStrace() !== null)(
    `may not lower the priority of its threads, as by a unit that filters the call: it seals all the same${skipped(lacksStrace())}`,
    async () => {
      const where = await place();
      const program = underStrace('error=EPERM', undefined, 'setpriority');
      const receiver = await ReceiverProcess.start(where.config, { env, program });
      const sent = await send(receiver, 3);
      await receiver.drained();
      await receiver.kill('SIGTERM');
      expect(await opened(where)).toEqual([...sent.values()].toSorted());
    },
  );

  it('reloaded twice and erased while it drains, killed and started again: all is there but the user', async () => {
    const [events, users, sink] = [6000, 20, 'archive'];
    const where = await place();
    const folder = dirname(where.config);
    const { signal } = new AbortController();
    await fillJournal(join(folder, 'journal'), events, () => undefined, signal, { sink, users });
    const receiver = await ReceiverProcess.start(where.config, { env });
    for (const [reloads, bytes] of ['64KiB', '1MiB'].entries()) {
      placeIn(folder, { rotate: { bytes } });
      receiver.signal('SIGHUP');
      await until(
        'the reload',
        () => receiver.logLines().filter(({ msg }) => msg === 'reloaded').length > reloads,
      );
    }
    const user = '00000000-0000-4000-8000-000000000003';
    const erase = await millrace(['erase', user, '--now', '--config', where.config], { env });
    expect(erase.code).toBe(0);
    await receiver.kill('SIGKILL');
    const again = await Receiver.start(where.config, { env });
    await again.drained();
    await again.kill('SIGTERM');
    const keys = new OpensSealed(where.store, parseMasterKey(MASTER));
    const found = new Map<unknown, Set<unknown>>();
    for (const line of linesIn(where.archive)) {
      const record = keys.open(line) as 'erased' | { id: string; user_id: string };
      if (record === 'erased') continue;
      found.set(record.user_id, (found.get(record.user_id) ?? new Set()).add(record.id));
    }
    expect(found.has(user)).toBe(false);
    expect(Array.from(found.values(), ({ size }) => size)).toEqual(
      Array.from({ length: users - 1 }, () => events / users),
    );
    expect(await verifyArchive(where.archive)).toMatchObject({ differences: [] });
  });

  it('fault 43: an older key store restored: the receiver and every command refuse it, verifying reports it, catching up mends it', async () => {
    const where = await place();
    const receiver = await Receiver.start(where.config, { env });
    const sent = await send(receiver, 6);
    const [user = '', id = ''] = [...sent][2] ?? [];
    await receiver.drained();
    const older = readFileSync(join(where.store, 'keys.bin'));
    await millrace(['erase', user, '--now', '--config', where.config], { env });
    await receiver.kill('SIGTERM');
    const run = (...args: string[]) => millrace([...args, '--config', where.config], { env });
    const out = join(where.store, '..', 'export');
    writeFileSync(join(where.store, 'keys.bin'), older);
    const commands = [
      ['serve'],
      ['export', where.archive, '--out', out],
      ['replay', where.archive, '--to', 'archive', '--dry-run'],
      ['keys', 'status'],
      ['archive', 'verify', where.archive],
    ];
    for (const command of commands) {
      const ended = await run(...command);
      expect([command[0], ended.code]).toEqual([command[0], 4]);
      for (const name of [where.store, join('erasure', 'ledger.jsonl')])
        expect(ended.stdout + ended.stderr).toContain(name);
    }
    const caughtUp = await run('keys', 'catch-up');
    expect([caughtUp.code, caughtUp.stdout]).toEqual([0, `${where.store}: 1 keys destroyed again\n`]);
    expect((await run('archive', 'verify', where.archive)).code).toBe(0);
    const expected = [...sent.values()].map((each) => (each === id ? 'erased' : each)).toSorted();
    expect(await opened(where)).toEqual(expected);
    // One key restored over its mark; another marked as destroyed by somebody without the master key.
    const file = join(where.store, 'keys.bin');
    const sound = readFileSync(file);
    const slots = Array.from({ length: 6 }, (_, n) => [(n + 1) * 128, (n + 2) * 128] as const);
    const [from = 0, to = 0] =
      slots.find(([a, b]) => !sound.subarray(a, b).equals(older.subarray(a, b))) ?? [];
    const returned = Buffer.from(sound);
    older.copy(returned, from, from, to);
    const [other = 0] = slots.find(([a]) => a !== from) ?? [];
    const forged = Buffer.from(sound);
    forgedMark(sound.subarray(other + 4, other + 20)).copy(forged, other);
    for (const [bytes, code] of [
      [returned, 'keys_stale'],
      [forged, 'tombstone_forged'],
    ] as const) {
      writeFileSync(file, bytes);
      const ended = await run('archive', 'verify', where.archive);
      expect([ended.code, ended.stdout]).toEqual([4, expect.stringContaining(code)]);
    }
  });

  it('without its master key, or with another, it does not start, and says why', async () => {
    const where = await place();
    const unset = await millrace(['serve', '--config', where.config]);
    expect([unset.code, unset.stderr]).toEqual([
      2,
      expect.stringContaining('MILLRACE_MASTER_KEY, which is not set'),
    ]);
    const receiver = await Receiver.start(where.config, { env });
    await send(receiver, 1);
    await receiver.kill('SIGTERM');
    const other = { MILLRACE_MASTER_KEY: Buffer.alloc(32, 6).toString('base64') };
    const wrong = await millrace(['serve', '--config', where.config], { env: other });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Master key is wrong')]);
    const replayed = await millrace(
      ['replay', where.archive, '--to', 'archive', '--dry-run', '--json', '--config', where.config],
      { env },
    );
    expect([replayed.code, JSON.parse(replayed.stdout)]).toEqual([
      0,
      expect.objectContaining({ selected: 1, problems: 0 }),
    ]);
  });
});
