import { Drift } from '../../tables/learned/drift.ts';
import { onceEach, readArchiveFolder, type Archive } from './archives.ts';
import { inTransaction, RowsRefused, type Database } from '../../tables/database/database.ts';
import {
  createLedger,
  readLoads,
  removeLoads,
  renameArchive,
  reviveDuplicates,
} from '../../tables/database/ledger.ts';
import type { LoadOptions, LoadSummary } from './options.ts';
import { planLoad, type LoadPlan } from './plan.ts';
import { type Load, LoadStep, noCounts } from './step.ts';
import { ensureTables } from '../../tables/database/tables.ts';

/**
 * Brings a database to what archives hold: loads what is new, loads again what has changed, removes what is gone. Each
 * transaction has the rows of some files and the note of them in the ledger, so that wherever it ends, the next run goes
 * on from there and no row is there twice.
 * @throws MillraceError archive_unreadable, archive_sealed, usage; errors of the database as they are
 */
export async function runLoad(database: Database, options: LoadOptions): Promise<LoadSummary> {
  const read = await Promise.all(options.paths.map((path) => readArchiveFolder(path, options.places)));
  const archives = onceEach(read);
  const opener = await options.opener?.();
  const tables = await inTransaction(database, async () => {
    await createLedger(database);
    return ensureTables(database, options.tables, options.wanted);
  });
  return new LoadRun({ database, tables, opener, options }).load(archives);
}

class LoadRun {
  readonly #load: Load;
  readonly #counts = noCounts();
  readonly #drift = new Drift();
  #files = 0;
  #replaced = 0;

  constructor(load: Load) {
    this.#load = load;
  }

  async load(archives: readonly Archive[]): Promise<LoadSummary> {
    const { database, tables, options } = this.#load;
    const { onProblem, retriesRefused } = options;
    const renamed = archives.filter(({ id, path }) => id !== path);
    await inTransaction(database, async () => {
      for (const { id, path } of renamed) await renameArchive(database, path, id);
    });
    const problems = archives.flatMap((archive) => archive.problems);
    for (const { file, reason } of problems) onProblem(file, null, reason);
    this.#counts.problems += problems.length;
    const plan = await this.#plan(archives, retriesRefused);
    for (const file of plan.missing) onProblem(file, null, 'in the manifest, but missing: its rows stay');
    let done = await this.#work(plan);
    // What was removed may have been held by another file too.
    while (done === 'again') done = await this.#work(await this.#plan(archives, false));
    return {
      ...this.#counts,
      files: this.#files,
      before: plan.before,
      replaced: this.#replaced,
      missing: plan.missing.length,
      drift: this.#drift.report((table) => tables.known.get(table)?.definition),
      unfinished: archives.reduce((sum, { unfinished }) => sum + unfinished, 0),
      complete: done === 'complete',
    };
  }

  async #plan(archives: readonly Archive[], isRetry: boolean): Promise<LoadPlan> {
    const { database, tables, opener } = this.#load;
    const loads = await inTransaction(database, () => readLoads(database));
    return planLoad(archives, loads, tables.shape, isRetry, opener);
  }

  async #work({ files, gone }: LoadPlan): Promise<'complete' | 'again' | 'interrupted'> {
    const { signal } = this.#load.options;
    try {
      let again = gone.length > 0 && (await this.#remove(gone));
      for (let at = 0; at < files.length;) {
        if (signal.aborted) return 'interrupted';
        const before = this.#files;
        if (await this.#step(files, at)) again = true;
        at += this.#files - before;
      }
      return again ? 'again' : 'complete';
    } catch (error) {
      if (signal.aborted) return 'interrupted';
      throw error;
    }
  }

  /** @returns whether files that were loaded before have to be loaded again */
  async #remove(gone: readonly number[]): Promise<boolean> {
    const { database, tables } = this.#load;
    const revived = await inTransaction(database, async () => {
      await removeLoads(database, tables.names, gone);
      return reviveDuplicates(database);
    });
    this.#replaced += gone.length;
    return revived;
  }

  /** Loads files from `from` on, as many as make a step: all of them, or nothing. @returns as `#remove` */
  async #step(files: LoadPlan['files'], from: number): Promise<boolean> {
    const { step, done, replaced } = await this.#tryStep(files, from).catch((error: unknown) => {
      if (!(error instanceof RowsRefused)) throw error;
      return this.#tryStep(files, from);
    });
    const { rows, ...counts } = step.counts;
    for (const name of ['records', 'duplicates', 'rejects', 'problems', 'erased'] as const)
      this.#counts[name] += counts[name];
    for (const [table, count] of Object.entries(rows))
      this.#counts.rows[table] = (this.#counts.rows[table] ?? 0) + count;
    for (const fields of step.met()) this.#drift.add(fields);
    this.#files += done;
    this.#replaced += replaced;
    return step.revived;
  }

  async #tryStep(files: LoadPlan['files'], from: number): Promise<Step> {
    const { database, options } = this.#load;
    const { onProgress, stepBytes } = options;
    const step = new LoadStep(this.#load);
    let done = 0;
    let replaced = 0;
    await inTransaction(database, async () => {
      for (const { source, replaces } of files.slice(from)) {
        const show = (): void =>
          onProgress({
            done: from + done,
            total: files.length,
            records: this.#counts.records + step.counts.records,
            file: source.file,
          });
        await step.load(source, replaces, show);
        done += 1;
        if (replaces.length > 0) replaced += 1;
        show();
        if (step.bytes >= stepBytes) break;
      }
    });
    return { step, done, replaced };
  }
}

/** A transaction that was committed. */
interface Step {
  readonly step: LoadStep;
  /** Files that were loaded. */
  readonly done: number;
  /** Those that took the place of what was loaded of them before. */
  readonly replaced: number;
}
