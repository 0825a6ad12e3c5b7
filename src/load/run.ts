import type { RecordOpener } from '../core/sealed-record.ts';
import { Drift } from '../warehouse/learned/drift.ts';
import { onceEach, readArchiveFolder, type Archive } from './archives.ts';
import type { LoadOptions, LoadSummary } from './options.ts';
import { planLoad, type LoadPlan } from './plan.ts';
import type { StepCounts } from './step.ts';
import type { LoadStore, StepDone } from './store.ts';
import type { LoadedTables } from './tables.ts';

/**
 * Brings a database to what archives hold: loads what is new, loads again what has changed, removes what is gone. Each
 * transaction has the rows of some files and the note of them in the ledger, so that wherever it ends, the next run goes
 * on from there and no row is there twice.
 * @throws MillraceError archive_unreadable, archive_sealed, usage; errors of the database as they are
 */
export async function runLoad(store: LoadStore, options: LoadOptions): Promise<LoadSummary> {
  const read = await Promise.all(options.paths.map((path) => readArchiveFolder(path, options.places)));
  const archives = onceEach(read);
  const opener = await options.opener?.();
  const tables = await store.prepare(options.tables, options.wanted);
  return new LoadRun(store, tables, opener, options).load(archives);
}

class LoadRun {
  readonly #store: LoadStore;
  readonly #tables: LoadedTables;
  readonly #opener: RecordOpener | undefined;
  readonly #options: LoadOptions;
  readonly #counts: StepCounts = { records: 0, duplicates: 0, rejects: 0, problems: 0, erased: 0, rows: {} };
  readonly #drift = new Drift();
  #files = 0;
  #replaced = 0;

  constructor(
    store: LoadStore,
    tables: LoadedTables,
    opener: RecordOpener | undefined,
    options: LoadOptions,
  ) {
    this.#store = store;
    this.#tables = tables;
    this.#opener = opener;
    this.#options = options;
  }

  async load(archives: readonly Archive[]): Promise<LoadSummary> {
    const { onProblem } = this.#options;
    for (const { id, path } of archives) if (id !== path) await this.#store.renameArchive(path, id);
    const problems = archives.flatMap((archive) => archive.problems);
    for (const { file, reason } of problems) onProblem(file, null, reason);
    this.#counts.problems += problems.length;
    const plan = await this.#plan(archives, this.#options.retriesRefused);
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
      drift: this.#drift.report((table) => this.#tables.known.get(table)?.definition),
      unfinished: archives.reduce((sum, { unfinished }) => sum + unfinished, 0),
      complete: done === 'complete',
    };
  }

  async #plan(archives: readonly Archive[], isRetry: boolean): Promise<LoadPlan> {
    return planLoad(archives, await this.#store.readLoads(), this.#tables.shape, isRetry, this.#opener);
  }

  async #work({ files, gone }: LoadPlan): Promise<'complete' | 'again' | 'interrupted'> {
    const { signal } = this.#options;
    try {
      let again = gone.length > 0 && (await this.#remove(gone));
      let at = 0;
      while (at < files.length) {
        if (signal.aborted) return 'interrupted';
        const { files: loaded, revived } = await this.#step(files, at);
        at += loaded;
        again ||= revived;
      }
      return again ? 'again' : 'complete';
    } catch (error) {
      if (signal.aborted) return 'interrupted';
      throw error;
    }
  }

  async #remove(gone: readonly number[]): Promise<boolean> {
    const revived = await this.#store.remove(this.#tables, gone);
    this.#replaced += gone.length;
    return revived;
  }

  async #step(files: LoadPlan['files'], from: number): Promise<StepDone> {
    const done = await this.#store.step({
      tables: this.#tables,
      opener: this.#opener,
      files: files.slice(from),
      options: this.#options,
      onShow: (read, { records }, file) =>
        this.#options.onProgress({
          done: from + read,
          total: files.length,
          records: this.#counts.records + records,
          file,
        }),
    });
    const { rows, ...counts } = done.counts;
    for (const name of ['records', 'duplicates', 'rejects', 'problems', 'erased'] as const)
      this.#counts[name] += counts[name];
    for (const [table, count] of Object.entries(rows))
      this.#counts.rows[table] = (this.#counts.rows[table] ?? 0) + count;
    for (const fields of done.met) this.#drift.add(fields);
    this.#files += done.files;
    this.#replaced += done.replaced;
    return done;
  }
}
