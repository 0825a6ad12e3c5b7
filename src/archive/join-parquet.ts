import { bufferOf } from '../parquet/stored-pages.ts';
import { placed } from '../parquet/row-group.ts';
import { recordsFooter, recordsMetadata, type SummedGroup } from './parquet-footer.ts';

/**
 * What makes one Parquet file of several that follow one another: a footer that names the row groups of all. Their own footers
 * stay between them, where no reader looks.
 * @throws Error for what is no Parquet file of archive records
 */
export async function joiningFooter(files: readonly Buffer[]): Promise<Buffer> {
  const groups: SummedGroup[] = [];
  let start = 0;
  for (const file of files) {
    const { row_groups: own } = await recordsMetadata(bufferOf(file));
    for (const group of own) groups.push({ ...placed(group, start), sum: group.sum });
    start += file.length;
  }
  return recordsFooter(groups);
}
