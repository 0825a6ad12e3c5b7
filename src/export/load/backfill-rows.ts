import { z } from 'zod';
import { Places } from '../../archive/places.ts';
import { MillraceError } from '../../core/errors.ts';
import { cutLines, type Line } from '../../lib/lines.ts';
import { jsonIn } from '../../lib/parsed.ts';
import type { GatheredRows } from '../../tables/database/database.ts';
import { writePulls } from '../../tables/database/pulls.ts';
import { certainRange, type Pull } from '../../tables/sql/vanished.ts';
import type { Tables } from '../../tables/tables.ts';
import type { TableDefinition } from '../../tables/definition.ts';
import { appendRows } from './append.ts';
import type { BackfillSource } from './archives.ts';
import { PULLS, readBackfillFolder } from './backfill-folder.ts';
import { type LoadCounts, type LoadTerms, noCounts } from './options.ts';
import { RowMembers } from './row-members.ts';

/** Bytes of rows that are sent to the database together. */
const BATCH_BYTES = 4 * 1024 * 1024;

const time = z.iso.datetime({ offset: true });
/** A line of the file of pulls; `since` and `until` are days, both included, or times, the second not included. */
const pullLine = z.object({
  user_id: z.string(),
  resource: z.string(),
  table: z.string(),
  provider: z.string().nullable().default(null),
  since: z.iso.date().or(time).nullable(),
  until: z.iso.date().transform(dayAfter).or(time).nullable(),
  began_at: time,
});

function dayAfter(day: string): string {
  return new Date(Date.parse(day) + 86_400_000).toISOString();
}

/**
 * The tables of which a backfill's folder has files, and its whole pulls.
 * @throws MillraceError usage for another folder; rows_missing where a table or a pull is not as it should be
 */
export async function filesOfBackfill(
  folder: string,
  known: Tables,
): Promise<{ readonly tables: ReadonlySet<string>; readonly pulls: readonly Pull[] }> {
  const places = new Places();
  const found = await readBackfillFolder(folder, places, known);
  if (found === null)
    throw new MillraceError('usage', `${folder}: it is not the output folder of a backfill`);
  for (const { file, reason } of found.problems)
    throw new MillraceError('rows_missing', `${file}: ${reason}`);
  const [{ root, rows }] = found.files;
  const tables = definitionsOf(rows, known);
  const pulls = await readPulls(cutLines(places.at(root).chunks(PULLS)), tables, (line, reason) => {
    throw new MillraceError('rows_missing', `${PULLS}:${line}: ${reason}`);
  });
  return { tables: new Set(tables.keys()), pulls };
}

function definitionsOf(rows: BackfillSource['rows'], known: Tables): ReadonlyMap<string, TableDefinition> {
  return new Map(rows.map(({ table }) => [table, known.entry(table).definition]));
}

/** @param onProblem gets each line that is no pull of these tables */
async function readPulls(
  chunks: AsyncIterable<Line[]>,
  tables: ReadonlyMap<string, TableDefinition>,
  onProblem: (line: number, reason: string) => void,
): Promise<Pull[]> {
  const pulls: Pull[] = [];
  for await (const lines of chunks)
    for (const { bytes, number, ended } of lines) {
      const pull: Pull | undefined =
        ended && bytes !== null ? pullLine.safeParse(jsonIn(bytes.toString())).data : undefined;
      const table = tables.get(pull?.table ?? '');
      if (pull === undefined) onProblem(number, 'it is no line of a pull');
      else if (table !== undefined) pulls.push(certainRange(pull, table));
      else onProblem(number, `${pull.table}.ndjson is missing`);
    }
  return pulls;
}

/** Loads the files of a backfill, as one load, in a transaction of the caller's. */
export class BackfillRows {
  readonly counts: LoadCounts = noCounts();
  readonly #terms: LoadTerms;
  readonly #root: string;
  readonly #load: number;

  constructor(terms: LoadTerms, root: string, load: number) {
    this.#terms = terms;
    this.#root = root;
    this.#load = load;
  }

  async load({ file, sha256, rows }: BackfillSource, onBatch: () => void): Promise<void> {
    const { tables, options } = this.#terms;
    for (const one of rows) await this.#loadFile(one.file, tables.known.entry(one.table).definition, onBatch);
    const written = definitionsOf(rows, tables.known);
    const noted = await readPulls(this.#linesOf(PULLS), written, (line, reason) =>
      this.#note(PULLS, line, reason),
    );
    const now = await readBackfillFolder(this.#root, options.places, tables.known);
    if (now?.files[0].sha256 !== sha256)
      this.#note(file, null, 'the files were replaced while they were loaded');
    // An incomplete pull would remove rows that the service still has.
    if (this.counts.problems + this.counts.rejects === 0)
      await writePulls(this.#terms.database, this.#load, noted);
    else
      options.onProblem(PULLS, null, 'not all rows are loaded: rows that have vanished at the service stay');
  }

  async #loadFile(file: string, table: TableDefinition, onBatch: () => void): Promise<void> {
    const members = new RowMembers(table);
    const rows = this.#terms.database.gather(table);
    let [numbers, size]: [number[], number] = [[], 0];
    for await (const lines of this.#linesOf(file)) {
      for (const { bytes, number, ended } of lines) {
        const fault = bytes === null || !ended ? 'the line is not complete' : members.copy(bytes, rows);
        if (fault === null) numbers.push(number);
        else this.#note(file, number, fault);
        size += bytes?.length ?? 0;
      }
      if (size < BATCH_BYTES) continue;
      await this.#send(file, rows, numbers);
      [numbers, size] = [[], 0];
      onBatch();
    }
    await this.#send(file, rows, numbers);
  }

  async *#linesOf(file: string): AsyncGenerator<Line[]> {
    const { places, signal } = this.#terms.options;
    for await (const lines of cutLines(places.at(this.#root).chunks(file))) {
      signal.throwIfAborted();
      yield lines;
    }
  }

  #note(file: string, line: number | null, reason: string): void {
    this.counts.problems += 1;
    this.#terms.options.onProblem(file, line, reason);
  }

  /** @param numbers of the rows' lines */
  async #send(file: string, rows: GatheredRows, numbers: readonly number[]): Promise<void> {
    if (rows.rows === 0) return;
    const { options, database } = this.#terms;
    const { counts } = this;
    const { name } = rows.definition;
    const refused = await appendRows(database, rows.take(), this.#load, (row, reason) => {
      options.onReject({ table: name, code: 'refused', reason, file, line: numbers[row] ?? 0 });
    });
    counts.rejects += refused;
    counts.records += numbers.length;
    counts.rows[name] = (counts.rows[name] ?? 0) + numbers.length - refused;
  }
}
