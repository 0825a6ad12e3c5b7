import { bigquery } from '../../warehouse/sql/dialects/bigquery.ts';
import type { Tables } from '../../warehouse/tables.ts';
import { type Load, loadOf } from '../ledger.ts';
import type { LoadStore, StepDone, StepWork } from '../store.ts';
import { chooseTables, type LoadedTables } from '../tables.ts';
import { BigQueryClient, type Place } from './client.ts';
import { STAGED } from './failure.ts';
import {
  LEDGER,
  READ_LOADS,
  READ_STATE,
  READ_TABLES,
  renameScript,
  STAGED_COLUMNS,
  STATE,
  stepScript,
  tablesScript,
  type Step,
} from './script.ts';
import { nameOf, Staging } from './staging.ts';

/** Milliseconds that staged rows stay when their run was cut short, and no other follows it. */
const STAGED_LIFETIME = 24 * 60 * 60 * 1000;

/**
 * A dataset of BigQuery. What a transaction of other databases takes in piece by piece is staged in a table beside first,
 * by a load job; then one script takes it over in a transaction. Its job id is a hash of the step: asked for again, after
 * whatever has gone wrong, it is the same job.
 */
export class BigQueryStore implements LoadStore {
  readonly #client: BigQueryClient;
  readonly #place: Place;
  /** Where the ledger stood when it was read. */
  #position = 0;

  private constructor(client: BigQueryClient, place: Place) {
    this.#client = client;
    this.#place = place;
  }

  /** @throws MillraceError usage where the SDK is not installed; database_refused, database_unavailable */
  static async open(place: Place): Promise<BigQueryStore> {
    return new BigQueryStore(await BigQueryClient.open(place), place);
  }

  async prepare(known: Tables, wanted: readonly string[]): Promise<LoadedTables> {
    const names = await this.#client.tables();
    // A run that was cut short has left them; users may have been erased since.
    for (const name of names.filter((each) => each.startsWith(STAGED))) await this.#client.dropTable(name);
    if (!names.includes(STATE)) await this.#client.run(LEDGER);
    const rows = await this.#client.run(READ_TABLES);
    const before = new Map(rows.map(({ name, shape }) => [String(name), String(shape)]));
    const { loaded, changed } = chooseTables(before, known, wanted, bigquery);
    const { project, dataset } = this.#place;
    if (changed.length > 0) await this.#client.run(tablesScript(loaded, changed, `${project}.${dataset}`));
    return loaded;
  }

  async readLoads(): Promise<readonly Load[]> {
    const [state, ...rows] = await this.#client.run(READ_LOADS);
    this.#position = Number(state?.['position']);
    return rows.map(loadOf);
  }

  async renameArchive(from: string, to: string): Promise<void> {
    // Each statement that changes a table is a job of seconds, and mostly there is nothing to rename.
    if ((await this.readLoads()).some(({ archive }) => archive === from))
      await this.#client.run(renameScript(from, to));
  }

  async remove(tables: LoadedTables, loads: readonly number[]): Promise<boolean> {
    await this.#commit({ tables, removed: loads, loads: [], staged: null }, 'none');
    return this.#hasRevived();
  }

  async step({ tables, opener, files, options, onShow }: StepWork): Promise<StepDone> {
    const staging = new Staging(tables, opener, options);
    const { counts } = staging;
    const loads: Load[] = [];
    const replaced: (readonly number[])[] = [];
    for (const { source, replaces } of files) {
      const show = (): void => onShow(loads.length, counts, source.file);
      loads.push(await staging.read(source, this.#position + loads.length + 1, show));
      if (replaces.length > 0) replaced.push(replaces);
      show();
      if (staging.bytes >= options.stepBytes) break;
    }
    const { packed, digest } = await staging.finish();
    const { lines, kinds } = staging;
    // One name for one content: what a run that was killed has left under it is the same.
    const table = `${STAGED}${nameOf([this.#position, digest])}`;
    if (lines > 0) await this.#client.upload(table, STAGED_COLUMNS, packed, STAGED_LIFETIME);
    const removed = replaced.flat();
    const staged = lines === 0 ? null : { table, lines, kinds };
    const came = await this.#commit({ tables, removed, loads, staged }, digest);
    if (lines > 0) await this.#client.dropTable(table);
    for (const [kind, rows] of came) if (kind !== '') counts.rows[kind] = rows;
    counts.duplicates = counts.records - (came.get('') ?? 0);
    return {
      files: loads.length,
      replaced: replaced.length,
      counts,
      met: staging.met(),
      revived: removed.length > 0 && (await this.#hasRevived()),
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** @returns how many lines of each kind came in */
  async #commit(change: Omit<Step, 'from' | 'to'>, digest: string): Promise<Map<string, number>> {
    const from = this.#position;
    // A load's number is where the ledger stands with it; a removal takes one too.
    const to = from + Math.max(change.loads.length, 1);
    const { project, dataset } = this.#place;
    const sql = stepScript({ ...change, from, to });
    const name = nameOf([project, dataset, digest, sql]);
    const rows = await this.#client.run(sql, `millrace_${name}`, async () => {
      const [state] = await this.#client.run(READ_STATE);
      return Number(state?.['position']) >= to;
    });
    this.#position = to;
    return new Map(rows.map(({ kind, lines }) => [String(kind), Number(lines)]));
  }

  async #hasRevived(): Promise<boolean> {
    const [state] = await this.#client.run(READ_STATE);
    return Number(state?.['revived']) > 0;
  }
}
