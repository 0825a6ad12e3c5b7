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
import { OpensSealed } from '../seal/open-sealed.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
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
  });
});
