import { inTransaction, RowsRefused, type Database } from '../../tables/database/database.ts';
import {
  createLedger,
  readLoads,
  removeLoads,
  renameArchive,
  reviveDuplicates,
} from '../../tables/database/ledger.ts';
import { removeVanished } from '../../tables/database/pulls.ts';
import { ensureTables } from '../../tables/database/tables.ts';
import { Drift } from '../../tables/learned/drift.ts';
import type { Archive } from './archives.ts';
import { readFolders } from './backfill-folder.ts';
import { addCounts, type LoadOptions, type LoadSummary, type LoadTerms, noCounts } from './options.ts';
import { planLoad, type LoadPlan } from './plan.ts';
import { LoadStep } from './step.ts';

/** Table that is loaded when none is named. */
const DEFAULT_TABLE = 'events';

/**
 * Loads what is new in archives and backfills into a database, loads again what has changed, and removes what is gone. A transaction
 * has the rows of some files and their loads in the ledger, so that a run that was interrupted is continued by the next one and no row
 * is there twice.
 * @throws MillraceError archive_unreadable, archive_sealed, usage; errors of the database as they are
 */
export async function runLoad(database: Database, options: LoadOptions): Promise<LoadSummary> {
  const { tables: known } = options;
  const archives = await readFolders(options);
  const backfills = archives.flatMap(({ files }) =>
    files.flatMap((source) => ('rows' in source ? source.rows : [])),
  );
  const isAnyArchive = archives.some(({ files }) => files.every((source) => !('rows' in source)));
  const named = options.wanted.length === 0 && isAnyArchive ? [DEFAULT_TABLE] : options.wanted;
  const opener = await options.opener?.();
  const tables = await inTransaction(database, async () => {
    await createLedger(database);
    return ensureTables(database, known, [...named, ...backfills.map(({ table }) => table)]);
  });
  return new LoadRun({ database, tables, opener, options }).load(archives);
}

class LoadRun {
  readonly #terms: LoadTerms;
  readonly #counts = noCounts();
  readonly #drift = new Drift();
  /** True when a step has removed what had vanished from the rows of all loads. */
  #searchedAll = false;

  constructor(terms: LoadTerms) {
    this.#terms = terms;
  }

  async load(archives: readonly Archive[]): Promise<LoadSummary> {
    const { database, tables, options } = this.#terms;
    const { onProblem, isFirstRound } = options;
    await inTransaction(database, async () => {
      for (const { id, path } of archives) if (id !== path) await renameArchive(database, path, id);
    });
    for (const { file, reason } of archives.flatMap(({ problems }) => problems)) {
      this.#counts.problems += 1;
      onProblem(file, null, reason);
    }
    const plan = await this.#plan(archives, isFirstRound);
    for (const file of plan.missing) onProblem(file, null, 'missing: its rows stay');
    let done = await this.#work(plan);
    // Another file may have events of a load that was removed.
    while (done === 'again') done = await this.#work(await this.#plan(archives, false));
    // A sink may have written rows since that were received before a pull.
    if (done === 'complete' && isFirstRound && !this.#searchedAll && database.dialect === 'postgres')
      this.#counts.vanished += await inTransaction(database, () => removeVanished(database, tables, 0));
    return {
      ...this.#counts,
      before: plan.before,
      missing: plan.missing.length,
      drift: this.#drift.report((table) => tables.known.get(table)?.definition),
      unfinished: archives.reduce((sum, { unfinished }) => sum + unfinished, 0),
      complete: done === 'complete',
    };
  }

  async #plan(archives: readonly Archive[], isRetry: boolean): Promise<LoadPlan> {
    const { database, tables, opener } = this.#terms;
    const loads = await inTransaction(database, () => readLoads(database));
    return planLoad(archives, loads, tables.shape, isRetry, opener);
  }

  async #work({ files, gone }: LoadPlan): Promise<'complete' | 'again' | 'interrupted'> {
    const { signal } = this.#terms.options;
    try {
      let again = gone.length > 0 && (await this.#remove(gone));
      for (let at = 0; at < files.length;) {
        if (signal.aborted) return 'interrupted';
        const step = await this.#step(files, at);
        addCounts(this.#counts, step.counts);
        for (const fields of step.met()) this.#drift.add(fields);
        again ||= step.revived;
        this.#searchedAll ||= step.searchesAll;
        at += step.counts.files;
      }
      return again ? 'again' : 'complete';
    } catch (error) {
      if (signal.aborted) return 'interrupted';
      throw error;
    }
  }

  /** @returns whether files that were loaded before have to be loaded again */
  async #remove(gone: readonly number[]): Promise<boolean> {
    const { database, tables } = this.#terms;
    const revived = await inTransaction(database, async () => {
      await removeLoads(database, tables.names, gone);
      return reviveDuplicates(database);
    });
    this.#counts.replaced += gone.length;
    return revived;
  }

  /** Loads files from `from` on, as many as a step takes, in one transaction. */
  async #step(files: LoadPlan['files'], from: number): Promise<LoadStep> {
    return this.#tryStep(files, from).catch((error: unknown) => {
      if (!(error instanceof RowsRefused)) throw error;
      return this.#tryStep(files, from);
    });
  }

  async #tryStep(files: LoadPlan['files'], from: number): Promise<LoadStep> {
    const { database, options } = this.#terms;
    const step = new LoadStep(this.#terms);
    await inTransaction(database, async () => {
      for (const planned of files.slice(from)) {
        const show = (): void =>
          options.onProgress({
            done: from + step.counts.files,
            total: files.length,
            records: this.#counts.records + step.counts.records,
            file: planned.source.file,
          });
        await step.load(planned, show);
        show();
        if (step.bytes >= options.stepBytes) break;
      }
      await step.finish();
    });
    return step;
  }
}
