import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/storage/open.ts';
import { verifyArchive } from '../../../src/archive/verify.ts';
import { Places } from '../../../src/archive/places.ts';
import { FaultyStore, storeSink, URL } from '../../sinks/store-support.ts';
import { filesSink, signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { objectsIn } from './objects-support.ts';
import { eraseFrom, eventOf, find, folderStore, secretOf, userId } from './support.ts';

const USER = userId(1);
const BARE = USER.replaceAll('-', '');
const CLIENT = 'made-up-client-1';
/** Ids of deliveries that name their user, as senders make them. */
const IDS = [
  USER,
  `delivery-${USER}-1`,
  `${BARE}.2`,
  `DELIVERY-${USER.toUpperCase()}`,
  CLIENT,
  `${CLIENT}#3`,
  `n=${CLIENT}`,
];

test('of an id that is a word or a number, the name has all of a word only where it is somebody else’s', async () => {
  const { sink } = filesSink(await temporaryFolder());
  await sink.open();
  const pathOf = async (id: string, user: string): Promise<string> =>
    (await sink.keep(eventOf(1, 1, { id, user, headers: {} }))).path;
  for (const id of ['17', 'msg_17', '17.2', 'a#17', 'n=17', 'x.17+'])
    expect(await pathOf(id, '17')).toMatch(/#hash-[0-9a-f]{32}\.json/);
  for (const id of ['msg_217', '1.7', 'a17']) expect(await pathOf(id, '17')).not.toContain('#hash-');
  expect(await pathOf('a+b*', 'a+b*')).toContain('#hash-');
  await sink.close(signal);
});

test.each(['folder', 'store'] as const)(
  'in a %s: a large event whose delivery id names its user is kept under a name that does not, and an erasure ends',
  async (kind) => {
    const root = await temporaryFolder();
    const path = join(root, kind);
    const { sink } =
      kind === 'folder' ? filesSink(path) : storeSink(await FaultyStore.in(path), join(root, 'spool'));
    await sink.open();
    const ids = [...IDS, 'msg_of_none'];
    const paths = new Map<string, string>();
    for (const id of ids) {
      const event = eventOf(1, 1, { id, headers: {} });
      const claim = await sink.keep(event);
      expect(await sink.keep(event)).toEqual(claim);
      paths.set(id, claim.path);
    }
    expect(new Set(paths.values()).size).toBe(ids.length);
    expect(paths.get('msg_of_none')).toMatch(/#msg_of_none\.json\.gz$/);
    await sink.keep(eventOf(2, 1, { headers: {} }));
    await sink.close(signal);
    const store =
      kind === 'folder' ? folderStore(path) : objectsIn(join(root, 'erasure'), () => openStore(path));
    const { receipts, left } = await eraseFrom(root, [store], 1, { by: 'client_user', id: CLIENT });
    expect([left, receipts.length]).toEqual([[], 2]);
    expect(find([root], [USER, BARE, CLIENT, secretOf(1)])).toEqual([]);
    const places = new Places(null, () => openStore(path));
    const { differences, claim_checks: kept } = await verifyArchive(kind === 'folder' ? path : URL, {
      places,
    });
    expect([differences, kept]).toEqual([[], 1]);
  },
);
