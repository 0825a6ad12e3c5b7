import type { ErasureRun, LeftItem } from '../../../src/core/erasure.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { eraseTable } from '../../../src/privacy/erase/delta-tables.ts';
import { PlaceRun } from '../../../src/privacy/erase/place-run.ts';
import { erasuresOver, FIELDS, folderStore } from '../../privacy/erase/support.ts';
import { temporaryFolder } from '../../support/folders.ts';

/** An erasure of one user over some folders, to be run as often as a test wants to. */
export async function erasureOf(id: string, folders: readonly string[], onStep?: (step: string) => void) {
  const folder = await temporaryFolder();
  const { erasures } = erasuresOver(
    folder,
    folders.map((path) => folderStore(path)),
    onStep === undefined ? {} : { onStep },
  );
  await erasures.request({ by: 'user', id, team: null }, true);
  return { erasures, run: () => erasures.run() };
}

/** Takes one user out of one table, in a store of the test's own. */
export async function eraseFrom(store: ObjectStore, prefix: string, id: string) {
  const left: LeftItem[] = [];
  const recorded: unknown[] = [];
  const subjects = [{ request: 'r1', by: 'user', id, team: null }] as const;
  const run: ErasureRun = {
    subjects,
    signal: new AbortController().signal,
    recorded: [],
    record: (item) => Promise.resolve(void recorded.push(item)),
    leave: (item) => void left.push(item),
    searched: () => undefined,
    onStep: () => undefined,
  };
  await eraseTable(new PlaceRun('tables', run, FIELDS), store, prefix);
  return { left, recorded };
}
