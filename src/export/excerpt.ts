import { readManifest } from '../archive/manifest.ts';
import { listArchive, type Places } from '../archive/places.ts';
import { readListed } from '../archive/read.ts';
import { eventOfRecord, parseRecord } from '../core/archive-record.ts';
import { MillraceError } from '../core/errors.ts';
import type { IsErased } from '../core/ingest.ts';
import type { Tables } from '../warehouse/tables.ts';
import { ParquetFile, type ParquetOutput } from './parquet-file.ts';
import { Rows } from './rows.ts';
import { canHoldWanted, isWanted, type Selection } from './select.ts';
import { shapesJobs } from './shaping-jobs.ts';

/** What is asked for: rows of one table, of some of an archive's records. */
export interface ExcerptOrder {
  /** Path or URL of the archive. */
  readonly path: string;
  readonly table: string;
  /** ISO 8601 in UTC with milliseconds, as the archive writes it; null for no limit. */
  readonly since: string | null;
  readonly until: string | null;
  readonly types: readonly string[];
  /** Records that are taken at most, and bytes of their lines. */
  readonly most: { readonly records: number; readonly bytes: number };
}

export interface ExcerptParts {
  readonly places: Places;
  readonly tables: Tables;
  readonly isErased: IsErased;
  readonly signal: AbortSignal;
}

/** What the file says of itself in its footer. */
export interface ExcerptFacts {
  /** Records that were wanted and taken. */
  readonly records: number;
  /** Whether there were more than `most` allows. */
  readonly cut: boolean;
  /** Records and files that could not be read. */
  readonly problems: number;
  /** Records that made no row, or have another shape than their table. */
  readonly rejects: number;
}

/** Bytes of lines that are shaped before their rows go to the file. */
const AT_ONCE = 4 * 1024 * 1024;

/**
 * Writes rows of an archive as one Parquet file, in bounded memory. Open files are read too, as far as they are.
 * @param write takes the file piece by piece; nothing at all when there is no row
 * @throws MillraceError archive_sealed, archive_unreadable
 */
export async function writeExcerpt(
  order: ExcerptOrder,
  { places, tables, isErased, signal }: ExcerptParts,
  write: (piece: Buffer) => Promise<void>,
): Promise<ExcerptFacts> {
  const facts = { records: 0, cut: false, problems: 0, rejects: 0 };
  const entry = tables.get(order.table);
  if (entry === undefined) throw new MillraceError('usage', `there is no table ${order.table}`);
  const { definition, document } = entry;
  const selection: Selection = { ...order, teams: [], users: [] };
  const takes = (type: string): boolean => tables.takes(entry, type);
  const terms = {
    tables,
    table: document.name,
    partition: 'none',
    format: 'parquet',
    compression: 'none',
  } as const;
  const perform = shapesJobs({ ...terms, selection });
  const join = async (parts: Parameters<ConstructorParameters<typeof ParquetFile>[2]>[0]) => {
    const outcome = perform({ table: definition.name, parts });
    if (!('group' in outcome)) throw new TypeError('columns became something else');
    return outcome.group;
  };
  const notes = () => ({ millrace: JSON.stringify(facts) });
  const file = new ParquetFile(() => Promise.resolve(new Pieces(write)), definition, join, notes);
  const rows = new Rows(terms, {
    onReject: () => (facts.rejects += 1),
    onUnknown: () => undefined,
    onWithoutTable: () => (facts.rejects += 1),
  });
  const flush = async (): Promise<void> => {
    for (const batch of rows.take().batches) if (batch.table === definition.name) await file.add(batch);
    await file.settled();
  };
  let [bytes, waiting] = [0, 0];
  for await (const item of itemsOf(order.path, places, selection, takes, signal)) {
    if (item.kind === 'problem') {
      if (item.sealed !== undefined)
        throw new MillraceError('archive_sealed', `${item.file}: its records are not opened for a browser`);
      facts.problems += 1;
      continue;
    }
    const { record, text, body } = item;
    if (!isWanted(record, selection, takes) || isErased(eventOfRecord(record, body))) continue;
    if (facts.records === order.most.records || bytes + text.length > order.most.bytes) {
      facts.cut = true;
      break;
    }
    facts.records += 1;
    bytes += text.length;
    waiting += text.length;
    rows.add(item);
    if (waiting < AT_ONCE) continue;
    waiting = 0;
    await flush();
  }
  await flush();
  await file.finish();
  return facts;
}

async function* itemsOf(
  path: string,
  places: Places,
  selection: Selection,
  takes: (type: string) => boolean,
  signal: AbortSignal,
) {
  const listing = await listArchive(path, places);
  const { entries, isSound } = await readManifest(listing);
  const skip = new Set(
    listing.files.filter((file) => {
      const line = entries.get(file);
      return isSound && line !== undefined && 'types' in line && !canHoldWanted(line, selection, takes);
    }),
  );
  for await (const items of readListed(listing, parseRecord, { places, parts: true, skip, signal }))
    yield* items;
}

/** Takes a file's bytes as they come. */
class Pieces implements ParquetOutput {
  bytes = 0;
  readonly #write: (piece: Buffer) => Promise<void>;

  constructor(write: (piece: Buffer) => Promise<void>) {
    this.#write = write;
  }

  async write(piece: Buffer): Promise<void> {
    this.bytes += piece.length;
    await this.#write(piece);
  }

  finish(): Promise<void> {
    return Promise.resolve();
  }

  facts(): { bytes: number; sha256: string } {
    return { bytes: this.bytes, sha256: '' };
  }

  abandon(): Promise<void> {
    return Promise.resolve();
  }
}
