import { MillraceError, folderError } from '../core/errors.ts';
import { Drift } from '../tables/learned/drift.ts';
import { FieldSums, type TableFields } from '../tables/learned/field-sums.ts';
import { adoption } from './adopted.ts';
import { isEndOfToday, isWithinDay } from './days.ts';
import { type ExportStep, isBetter } from './export-step.ts';
import { StepLog, type StepLogOptions } from './step-log.ts';
import type { ExportOptions, ExportSummary } from './options.ts';
import { Shaping } from './shaping.ts';
import { identitiesIn, identityOf, isStale, planExport, type ExportPlan } from './plan.ts';
import type { Source } from './archive-files.ts';
import { entriesNamed, takenBy } from './select.ts';
import { listSources, type SourceList } from './sources.ts';
import { StepRun, type StepOptions } from './step.ts';
import { checkTypes } from './types.ts';
import { isStoreUrl } from '../core/place.ts';
import { workFolderFor } from '../lib/work-folder.ts';
import { openStore } from '../storage/open.ts';
import { ExportFolder } from './export-folder.ts';
import type { ExportTarget } from './export-target.ts';
import { ExportStore } from './export-store.ts';

/** Most files of archives in one step: its line in the log lists them all. */
const STEP_SOURCES = 1000;

/**
 * Exports finished files of archives to files of table rows, or to Delta tables, in steps, each of which is there as a whole or not
 * at all. A further run exports what has come since, and exports again what has changed.
 * @throws MillraceError archive_unreadable, archive_sealed, folder_unwritable, folder_in_use, table_changed, or usage when
 *   the target holds another export
 */
export async function runExport(options: ExportOptions): Promise<ExportSummary> {
  const { tables, table, compression, partition, selection, onProblem } = options;
  const format = options.format === 'delta' ? 'parquet' : options.format;
  const takes = takenBy(tables, entriesNamed(tables, table));
  const list = await listSources(options.paths, options.places, selection, takes);
  for (const { file, reason } of list.problems) onProblem(file, null, reason);
  const opener = await options.opener?.();
  const opened = opener !== undefined;
  const shaping = new Shaping({ tables, table, format, compression, partition, selection, opened });
  const log = await openLog(options, (step) => isStale(step, list, opener));
  try {
    return await new ExportRun({ ...options, format, keys: opener, shaping }, log, list).run(
      options.format === 'delta',
    );
  } finally {
    await shaping.close();
    await log.close();
  }
}

/** One run of an export whose files are listed and whose log is open. */
class ExportRun {
  readonly #options: StepOptions;
  readonly #log: StepLog;
  readonly #list: SourceList;
  readonly #done: ExportStep[] = [];
  readonly #drift = new Drift();
  #problems = 0;

  constructor(options: StepOptions, log: StepLog, list: SourceList) {
    this.#options = options;
    this.#log = log;
    this.#list = list;
  }

  /** @param isDelta Delta tables have the types of their columns, which need not be checked */
  async run(isDelta: boolean): Promise<ExportSummary> {
    const { tables, signal, onProblem, out } = this.#options;
    await this.#finishStep();
    const plan = await this.#plan();
    for (const { file, reason } of plan.faults) onProblem(file, null, reason);
    if (!isDelta) checkTypes(plan.staying, tables, out);
    const earlier = fieldsOf(this.#log.standing);
    const complete = (await this.#exportNew(plan)) && (await this.#exportPartly(plan));
    const drift = this.#drift.report((name) => tables.get(name)?.definition, earlier);
    const lost = signal.aborted ? [] : await this.#log.lost();
    for (const file of lost) onProblem(file, null, 'gone from the export; --again makes all files again');
    const summary = summaryOf(this.#list, plan, this.#done, complete);
    return { ...summary, problems: summary.problems + this.#problems, lost: lost.length, drift };
  }

  async #plan(): Promise<ExportPlan> {
    const { again, today, places, keys: opener, onProblem } = this.#options;
    const rewritten = await this.#log.rewritten();
    const adopted = again ? null : adoption(this.#log.nextStep, rewritten, this.#list, opener);
    if (adopted !== null) {
      await this.#log.commit(adopted);
      this.#problems += 1;
    }
    for (const { keeps } of this.#log.standing)
      if (keeps[0] !== undefined) onProblem(keeps[0], null, REWRITTEN);
    const unreplaceable = adopted === null ? rewritten : [...rewritten, adopted];
    return planExport(this.#log.standing, this.#list, { again, today, unreplaceable, opener, places });
  }

  /** @returns false when it was interrupted */
  async #exportNew({ sources, stale }: ExportPlan): Promise<boolean> {
    const { today, signal } = this.#options;
    const replacing = replacementOf(stale);
    await this.#log.checkRemoval(replacing.removes);
    let at = 0;
    let records = 0;
    let complete = sources.length === 0 && stale.length === 0;
    while (!complete && !signal.aborted) {
      const run = new StepRun(this.#options, this.#log, { done: at, total: sources.length, records });
      const made = await run.run(sources.slice(at, endOfStep(sources, at, today)));
      if (made === null) return false;
      at += made.sources.length;
      records += made.records;
      complete = at === sources.length;
      // The last step replaces the old files: until then rows are there twice, never not at all.
      if (!(await this.#commit(complete ? { ...made, ...replacing } : made, run.met()))) return false;
    }
    return complete;
  }

  /** Exports again what could not be read completely. @returns false when it was interrupted */
  async #exportPartly({ partly }: ExportPlan): Promise<boolean> {
    for (const { step, sources } of partly) {
      if (this.#options.signal.aborted) return false;
      const run = this.#wholeStep(this.#log, sources.length);
      const made = await run.run(sources);
      if (made === null) return false;
      if (!isBetter(step, made, this.#log.passedOver)) {
        await this.#log.discard();
        this.#problems += made.problems;
        continue;
      }
      const replacing = replacementOf([step]);
      await this.#log.checkRemoval(replacing.removes);
      if (!(await this.#commit({ ...made, ...replacing }, run.met()))) return false;
    }
    return true;
  }

  /** @returns false when it was interrupted; the next run completes the step */
  async #commit(step: ExportStep, met: readonly TableFields[]): Promise<boolean> {
    try {
      await this.#log.commit(step);
    } catch (error) {
      if (!this.#options.signal.aborted) throw error;
      return false;
    }
    this.#done.push(step);
    for (const fields of met) this.#drift.add(fields);
    return true;
  }

  #wholeStep(log: Pick<StepLog, 'work' | 'nextStep'>, total: number): StepRun {
    const options = { ...this.#options, stepBytes: Number.POSITIVE_INFINITY };
    return new StepRun(options, log, { done: 0, total, records: 0 });
  }

  /**
   * Makes the missing files of a step that another machine has listed. Every machine makes the same bytes, so that machine may still
   * be running.
   * @throws MillraceError folder_in_use when they cannot be made here
   */
  async #finishStep(): Promise<void> {
    const [log, { signal }] = [this.#log, this.#options];
    const lost = log.unfinished;
    if (lost === null) return;
    const here = identitiesIn(this.#list);
    const own = lost.sources.flatMap((source) => here.get(identityOf(source)) ?? []);
    const run = this.#wholeStep({ work: log.work, nextStep: lost.step }, own.length);
    const made = own.length === lost.sources.length ? await run.run(own) : null;
    const isSame = JSON.stringify(made?.files) === JSON.stringify(lost.files);
    if (isSame || signal.aborted) return log.settle();
    // Its unreadable lines can be read now, or more of them cannot.
    if (lost.problems > 0) return log.passOver(lost);
    throw new MillraceError(
      'folder_in_use',
      `step ${lost.step} was begun with other archive files, and ended before its files were there; ` +
        'run that export again where it was begun, or export to another place',
    );
  }
}

/** The index after the last source of a step that begins at `from`. */
function endOfStep(sources: readonly Source[], from: number, today: string | undefined): number {
  if (today === undefined) return from + STEP_SOURCES;
  const ends = sources.findIndex((next, at) => {
    const one = sources[at - 1];
    if (at <= from || one === undefined) return false;
    return isEndOfToday(one, next, today) || (at >= from + STEP_SOURCES && !isWithinDay(one, next, today));
  });
  return ends === -1 ? sources.length : ends;
}

const REWRITTEN =
  'another program has rewritten it: only an erasure that searches this folder takes users out of its rows (erasure.folders)';

function replacementOf(steps: readonly ExportStep[]): Pick<ExportStep, 'replaces' | 'removes'> {
  return {
    replaces: steps.map(({ step }) => step),
    removes: steps.flatMap(({ files, keeps }) => [...keeps, ...files.map(({ file }) => file)]),
  };
}

async function openLog(options: ExportOptions, stale: StepLogOptions['isStale']): Promise<StepLog> {
  const { tables, table, format, compression, partition, selection, columns, signal, onProblem } = options;
  const target = await openTarget(options);
  const { DeltaTables } = await import('./delta/delta-tables.ts');
  const names = entriesNamed(tables, table).flatMap(({ definition }) => tables.withNested(definition.name));
  return StepLog.open(target, {
    terms: {
      table,
      format,
      compression,
      partition,
      ...selection,
      ...(columns && { columns: columns.toSorted().join() }),
    },
    tablesOf: (id) =>
      format === 'delta' ? new DeltaTables(target.store, { tables, names, partition, id, signal }) : null,
    onKept: (reason) => onProblem(target.url, null, reason),
    isStale: stale,
    signal,
  });
}

/** What the rows of steps had. */
function fieldsOf(steps: readonly ExportStep[]): FieldSums {
  const sums = new FieldSums();
  for (const { files, filled } of steps)
    for (const [table, counts] of Object.entries(filled)) {
      const rows = files.reduce((sum, file) => sum + (file.table === table ? file.rows : 0), 0);
      sums.add({ table, rows, filled: new Map(Object.entries(counts)), extra: [] });
    }
  return sums;
}

function summaryOf(
  { passedOver, unfinished, problems }: SourceList,
  { before, faults }: ExportPlan,
  steps: readonly ExportStep[],
  complete: boolean,
): Omit<ExportSummary, 'drift' | 'lost'> {
  const sum = (of: (step: ExportStep) => number): number => steps.reduce((all, step) => all + of(step), 0);
  const missing = (is: boolean): number => faults.filter(({ isMissing }) => isMissing === is).length;
  const files = steps.flatMap((step) => step.files);
  const rows: Record<string, number> = {};
  for (const { table, rows: count } of files) rows[table] = (rows[table] ?? 0) + count;
  const withoutTable = new Map<string, number>();
  for (const [type, count] of steps.flatMap((step) => Object.entries(step.without_table)))
    withoutTable.set(type, (withoutTable.get(type) ?? 0) + count);
  return {
    steps: steps.length,
    read: sum(({ sources }) => sources.length),
    before,
    passed_over: passedOver,
    unfinished,
    records: sum(({ records }) => records),
    rows,
    files: files.length,
    bytes: files.reduce((all, { bytes }) => all + bytes, 0),
    replaced: sum(({ removes }) => removes.length),
    rejects: sum(({ rejects }) => rejects),
    without_table: Object.fromEntries(withoutTable),
    problems: problems.length + missing(false) + sum((step) => step.problems),
    missing: missing(true),
    erased: sum(({ erased }) => erased),
    complete,
  };
}

/** Opens the target for writing. @throws MillraceError folder_unwritable, folder_in_use, usage */
async function openTarget({
  out,
  work = workFolderFor(out),
  storage,
}: Pick<ExportOptions, 'out' | 'work' | 'storage'>): Promise<ExportTarget> {
  const store = await openStore(out, storage);
  const isUrl = isStoreUrl(out);
  try {
    return isUrl ? await ExportStore.open(store, work) : await ExportFolder.open(out, store);
  } catch (error) {
    await store.close();
    throw folderError(isUrl ? work : out, error);
  }
}
