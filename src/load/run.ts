import type { RecordOpener } from '../core/sealed-record.ts';
import { Drift } from '../warehouse/learned/drift.ts';
import { readArchiveFolder, type Archive } from './archives.ts';
import { inTransaction, type Database } from './database.ts';
import { createLedger, readLoads, removeLoads, renameArchive, reviveDuplicates } from './ledger.ts';
import type { LoadOptions, LoadSummary } from './options.ts';
import { planLoad, type LoadPlan } from './plan.ts';
import { LoadStep, type StepCounts } from './step.ts';
import { ensureTables, type LoadedTables } from './tables.ts';

/**
 * Brings a database to what archives hold: loads what is new, loads again what has changed, removes what is gone. Each
 * transaction has the rows of some files and the note of them in the ledger, so that wherever it ends, the next run goes
 * on from there and no row is there twice.
 * @throws MillraceError archive_unreadable, archive_sealed, usage; errors of the database as they are
 */
export async function runLoad(database: Database, options: LoadOptions): Promise<LoadSummary> {
  const archives = await Promise.all(options.paths.map(readArchiveFolder));
  const opener = await options.opener?.();
  await createLedger(database);
  const tables = await ensureTables(database, options.tables, options.wanted);
  return new LoadRun(database, tables, opener, options).load(archives);
}

class LoadRun {
  readonly #database: Database;
  readonly #tables: LoadedTables;
  readonly #opener: RecordOpener | undefined;
  readonly #options: LoadOptions;
  readonly #counts: StepCounts = { records: 0, duplicates: 0, rejects: 0, problems: 0, erased: 0, rows: {} };
  readonly #drift = new Drift();
  #files = 0;
  #replaced = 0;

  constructor(
    database: Database,
    tables: LoadedTables,
    opener: RecordOpener | undefined,
    options: LoadOptions,
  ) {
    this.#database = database;
    this.#tables = tables;
    this.#opener = opener;
    this.#options = options;
  }

  async load(archives: readonly Archive[]): Promise<LoadSummary> {
    const { onProblem } = this.#options;
    for (const { id, path } of archives) if (id !== path) await renameArchive(this.#database, path, id);
    const problems = archives.flatMap((archive) => archive.problems);
    for (const { file, reason } of problems) onProblem(file, null, reason);
    this.#counts.problems += problems.length;
    const plan = await this.#plan(archives);
    for (const file of plan.missing) onProblem(file, null, 'in the manifest, but missing: its rows stay');
    let done = await this.#work(plan);
    // What was removed may have been held by another file too.
    while (done === 'again') done = await this.#work(await this.#plan(archives));
    return {
      ...this.#counts,
      files: this.#files,
      before: plan.before,
      replaced: this.#replaced,
      missing: plan.missing.length,
      drift: this.#drift.report((table) => this.#tables.known.get(table)?.definition),
      unfinished: archives.reduce((sum, { unfinished }) => sum + unfinished, 0),
      complete: done === 'complete',
    };
  }

  async #plan(archives: readonly Archive[]): Promise<LoadPlan> {
    return planLoad(archives, await readLoads(this.#database), this.#tables.shape, this.#opener);
  }

  async #work({ files, gone }: LoadPlan): Promise<'complete' | 'again' | 'interrupted'> {
    const { signal } = this.#options;
    try {
      let again = gone.length > 0 && (await this.#remove(gone));
      let at = 0;
      while (at < files.length) {
        if (signal.aborted) return 'interrupted';
        const step = new LoadStep(this.#database, this.#tables, this.#opener, this.#options);
        at = await this.#step(step, files, at);
        again ||= step.revived;
      }
      return again ? 'again' : 'complete';
    } catch (error) {
      if (signal.aborted) return 'interrupted';
      throw error;
    }
  }

  async #remove(gone: readonly number[]): Promise<boolean> {
    const revived = await inTransaction(this.#database, async () => {
      await removeLoads(this.#database, this.#tables.names, gone);
      return reviveDuplicates(this.#database);
    });
    this.#replaced += gone.length;
    return revived;
  }

  /** One transaction. @returns index of the first file that is left */
  async #step(step: LoadStep, files: LoadPlan['files'], from: number): Promise<number> {
    let at = from;
    let replaced = 0;
    await inTransaction(this.#database, async () => {
      for (const { source, replaces } of files.slice(from)) {
        const show = (): void => this.#show(at, files.length, step, source.file);
        await step.load(source, replaces, show);
        at += 1;
        if (replaces.length > 0) replaced += 1;
        show();
        if (step.bytes >= this.#options.stepBytes) break;
      }
    });
    const { rows, ...counts } = step.counts;
    for (const name of ['records', 'duplicates', 'rejects', 'problems', 'erased'] as const)
      this.#counts[name] += counts[name];
    for (const [table, count] of Object.entries(rows))
      this.#counts.rows[table] = (this.#counts.rows[table] ?? 0) + count;
    for (const fields of step.met()) this.#drift.add(fields);
    this.#files += at - from;
    this.#replaced += replaced;
    return at;
  }

  #show(done: number, total: number, { counts }: LoadStep, file: string): void {
    this.#options.onProgress({ done, total, records: this.#counts.records + counts.records, file });
  }
}
