import { readArchive } from '../../../src/archive/read.ts';
import type { RecordOpener } from '../../../src/core/sealed-record.ts';

/** Records in an archive that its receiver has finished, and how many ids they have. */
export async function countArchive(
  archive: string,
  opener?: RecordOpener,
): Promise<{ records: number; ids: number }> {
  const ids = new Set<string>();
  let records = 0;
  for await (const item of readArchive(archive, { opener })) {
    if (item.kind !== 'record') throw new Error(`${item.file}: ${item.reason}`);
    records += 1;
    ids.add(item.record.id);
  }
  return { records, ids: ids.size };
}
