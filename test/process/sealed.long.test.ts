import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readArchive } from '../../src/archive/read.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { KeyStore } from '../../src/privacy/seal/key-store.ts';
import { parseMasterKey } from '../../src/privacy/seal/master-key.ts';
import { fillJournal } from '../bench/ingest/fill.ts';
import { OpensSealed } from '../privacy/seal/open-sealed.ts';
import { Place } from '../support/place.ts';
import { skipped } from '../support/requirements.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';

const MASTER = `mrk_${Buffer.alloc(32, 5).toString('base64')}`;

const prepared = (): Promise<Place> =>
  Place.make(
    (folder) => {
      const encrypt = { store: join(folder, 'keys'), masterKey: '${MILLRACE_MASTER_KEY}' };
      return { sinks: { archive: { type: 'files', path: join(folder, 'archive'), encrypt } } };
    },
    { MILLRACE_MASTER_KEY: MASTER },
  );

/** Made-up events of different users. */
const EVENTS = Array.from({ length: 6 }, (_, n) => madeUpEvent(n, 'daily.data.meal.created'));

async function opened(place: Place): Promise<string[]> {
  const opener = await KeyStore.read(place.at('keys'), parseMasterKey(MASTER));
  const found: string[] = [];
  for await (const item of readArchive(place.at('archive'), { opener, parts: true }))
    found.push(item.kind === 'record' ? item.record.id : (item.sealed?.why ?? item.reason));
  return found.toSorted();
}

interface Sealed {
  readonly id: string;
  readonly user_id: string;
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
      const place = await prepared();
      const program = underStrace('error=EPERM', undefined, 'setpriority');
      const receiver = await place.startProcess({ program });
      await receiver.send(EVENTS);
      await receiver.drained();
      await receiver.stop();
      expect(await opened(place)).toEqual(EVENTS.map(({ id }) => id).toSorted());
    },
  );

  it('reloaded twice and erased while it drains, killed and started again: all is there but the user', async () => {
    const [events, users, sink] = [6000, 20, 'archive'];
    const place = await prepared();
    const { signal } = new AbortController();
    await fillJournal(place.at('journal'), events, signal, { sink, users });
    const receiver = await place.startProcess();
    for (const bytes of ['64KiB', '1MiB']) {
      place.edit(({ sinks }) => (sinks.archive.rotate = { bytes }));
      expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
    }
    const user = '00000000-0000-4000-8000-000000000003';
    await place.ok('erase', user, '--now');
    await receiver.kill('SIGKILL');
    const again = await place.start();
    await again.drained();
    await again.stop();
    const keys = new OpensSealed(place.at('keys'), parseMasterKey(MASTER));
    const records = linesIn(place.at('archive')).map((line) => keys.open(line) as 'erased' | Sealed);
    const kept = records.filter((record) => record !== 'erased');
    const found = Map.groupBy(kept, (record) => record.user_id);
    expect(found.has(user)).toBe(false);
    expect(Array.from(found.values(), (each) => new Set(each.map(({ id }) => id)).size)).toEqual(
      Array.from({ length: users - 1 }, () => events / users),
    );
    expect(await verifyArchive(place.at('archive'))).toMatchObject({ differences: [] });
  });

  it('fault 43: an older key store restored: the receiver and every command refuse it, verifying reports it, catching up mends it', async () => {
    const place = await prepared();
    const [archive, store] = [place.at('archive'), place.at('keys')];
    const receiver = await place.start();
    await receiver.send(EVENTS);
    const { id: gone, body } = EVENTS[2]!;
    await receiver.drained();
    const older = readFileSync(join(store, 'keys.bin'));
    await place.run('erase', (JSON.parse(body.toString()) as Sealed).user_id, '--now');
    await receiver.stop();
    writeFileSync(join(store, 'keys.bin'), older);
    for (const command of [
      ['serve'],
      ['export', archive, '--out', place.at('export')],
      ['replay', archive, '--to', 'archive', '--dry-run'],
      ['keys', 'status'],
      ['archive', 'verify', archive],
    ]) {
      const { code, stdout, stderr } = await place.run(...command);
      expect([command[0], code]).toEqual([command[0], 4]);
      for (const name of [store, join('erasure', 'ledger.jsonl')]) expect(stdout + stderr).toContain(name);
    }
    expect(await place.ok('keys', 'catch-up')).toBe(`${store}: 1 keys destroyed again\n`);
    await place.ok('archive', 'verify', archive);
    expect(await opened(place)).toEqual(EVENTS.map(({ id }) => (id === gone ? 'erased' : id)).toSorted());
  });
});
