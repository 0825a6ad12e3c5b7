import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { resolveConfig } from '../../../src/config/load.ts';
import type { RemovedEvent } from '../../../src/core/erasure.ts';
import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';
import { createErasures } from '../../../src/privacy/erase/stores.ts';
import { Cell } from '../../../src/lib/live.ts';
import { openProof } from '../../../src/privacy/proof/open.ts';
import { signal } from '../../sinks/support.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { writeConfig } from '../../support/millrace.ts';
import { MASTER_TEXT } from '../seal/support.ts';
import { eraseNow, eventOf, QUIET } from './support.ts';

/** Seals events of two users, one each, in an archive, with keys of its own. */
async function seal(path: string, store: string, n: number): Promise<Buffer> {
  const events = [1, 2].map((user) => eventOf(user, n + user, { headers: {} }));
  await writeFiles(path, [batchOf(...events)], { options: { encrypt: { store, masterKey: MASTER_TEXT } } });
  return events[0]?.body ?? Buffer.alloc(0);
}

const nothing = (): Promise<void> => Promise.resolve();

/** The erasures of a receiver with a sealed archive and without receipts; its journal gets what to forget. */
async function receiver(
  folder: string,
  path: string,
  forget: (events: readonly RemovedEvent[]) => Promise<void>,
) {
  const encrypt = { store: join(folder, 'keys'), masterKey: MASTER_TEXT };
  const file = writeConfig(folder, { sinks: { archive: { type: 'files', path, encrypt } } });
  const { config } = await resolveConfig({ file, env: {} });
  return createErasures({
    plan: new Cell({ config }),
    users: ErasedUsers.open(config.erasure.path),
    journal: () =>
      Promise.resolve({
        name: 'journal',
        erase: nothing,
        erased: nothing,
        forget,
        checkpoints: { load: () => Promise.resolve(null), save: nothing },
      }),
    proof: openProof(config),
    log: QUIET,
    signal,
  });
}

test('the journal forgets what it has of sealed events also where there are no receipts', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'archive');
  const body = await seal(path, join(folder, 'keys'), 0);
  const forgotten: string[] = [];
  const erasures = await receiver(folder, path, async (events) => {
    await Promise.resolve();
    forgotten.push(...events.map(({ bodyHash }) => Buffer.from(bodyHash, 'latin1').toString('hex')));
  });
  expect(await eraseNow(erasures, 1)).toMatchObject({ left: [], receipts: [{ not_searched: [] }] });
  expect(forgotten).toEqual([createHash('sha256').update(body).digest('hex')]);
});

test('a receipt says how many records another receiver has sealed: a user may be in those', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'archive');
  await seal(path, join(folder, 'keys'), 0);
  await seal(path, join(folder, 'keys-of-the-other'), 10);
  const erasures = await receiver(folder, path, () => Promise.resolve());
  const [receipt] = (await eraseNow(erasures, 1)).receipts;
  expect(receipt?.not_searched).toEqual(['2 sealed records of keys that are not in this store']);
});
