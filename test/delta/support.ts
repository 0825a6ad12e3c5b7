import { erasuresOver, folderStore } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';

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
