import { MillraceError, folderError } from '../core/errors.ts';
import { Drift, type Earlier } from '../tables/learned/drift.ts';
import { adoption } from './adopted.ts';
import { isEndOfToday, isWithinDay } from './days.ts';
import { type ExportStep, isBetter } from './export-step.ts';
import { Ledger, type LedgerOptions } from './ledger.ts';
import type { ExportOptions, ExportSummary } from './options.ts';
import { Shaping } from './shaping.ts';
import { identitiesIn, identityOf, isStale, planExport, type ExportPlan } from './plan.ts';
import type { Source } from './archive-files.ts';
import { listSources, type SourceList } from './sources.ts';
import { StepRun, type StepOptions } from './step.ts';
import { checkTypes } from './types.ts';
import { isStoreUrl } from '../core/place.ts';
import { workFolderFor } from '../lib/work-folder.ts';
import { openStore } from '../storage/open.ts';
import { FolderPlace } from './folder-place.ts';
import type { ExportPlace } from './place.ts';
import { StorePlace } from './store-place.ts';

/** Files of one step: its line in the ledger lists them all. */
const STEP_SOURCES = 1000;

/**
 * Exports finished files of archives to files of table rows, or to Delta tables. It goes in steps, each of which is
 * there as a whole or not at all; a further run exports what has come since, and exports again what has changed.
 * @throws MillraceError archive_unreadable, archive_sealed, folder_unwritable, folder_in_use, table_changed, or usage when
 *   the place holds another export
 */
export async function runExport(options: ExportOptions): Promise<ExportSummary> {
  const { tables, table, compression, partition, selection, signal } = options;
  const format = options.format === 'delta' ? 'parquet' : options.format;
  const entry = tables.entry(table);
  const list = await listSources(options.paths, options.places, selection, (type) =>
    tables.takes(entry, type),
  );
  for (const { file, reason } of list.problems) options.onProblem(file, null, reason);
  const opener = await options.opener?.();
  const opened = opener !== undefined;
  const shaping = new Shaping({ tables, table, format, compression, partition, selection, opened });
  const steps: StepOptions = { ...options, format, keys: opener, shaping };
  const ledger = await openLedger(options, (step) => isStale(step, list, opener));
  try {
    await finishStep(ledger, list, steps);
    const { again, today, places, onProblem } = options;
    const rewritten = await ledger.rewritten();
    const adopted = again ? null : adoption(ledger.nextStep, rewritten, list, opener);
    if (adopted !== null) await ledger.commit(adopted);
    for (const { keeps } of ledger.standing) if (keeps[0] !== undefined) onProblem(keeps[0], null, REWRITTEN);
    const unreplaceable = adopted === null ? rewritten : [...rewritten, adopted];
    const plan = await planExport(ledger.standing, list, { again, today, unreplaceable, opener, places });
    for (const { file, reason } of plan.faults) onProblem(file, null, reason);
    const { stale, staying, sources } = plan;
    // Delta tables know the types of their columns themselves.
    if (options.format !== 'delta') checkTypes(staying, tables, options.out);
    const replacing = replacementOf(stale);
    await ledger.checkRemoval(replacing.removes);
    const earlier = earlierOf(ledger.standing);
    const drift = new Drift();
    const done: ExportStep[] = [];
    let at = 0;
    let records = 0;
    let complete = sources.length === 0 && stale.length === 0;
    while (!complete && !signal.aborted) {
      const so = { done: at, total: sources.length, records };
      const run = new StepRun(steps, ledger, so);
      const made = await run.run(sources.slice(at, endOfStep(sources, at, today)));
      if (made === null) break;
      at += made.sources.length;
      records += made.records;
      complete = at === sources.length;
      // The old goes with the last of the new: until then rows are there twice, never not at all.
      const step = complete ? { ...made, ...replacing } : made;
      if (!(await isCommitted(ledger, step, signal))) {
        complete = false;
        break;
      }
      done.push(step);
      for (const fields of run.met()) drift.add(fields);
    }
    let problems = adopted === null ? 0 : 1;
    for (const one of complete ? plan.partly : []) {
      const run = new StepRun({ ...steps, stepBytes: Number.POSITIVE_INFINITY }, ledger, NOTHING_YET);
      const made = signal.aborted ? null : await run.run(one.sources);
      if (made !== null && !isBetter(one.step, made, ledger.passedOver)) {
        await ledger.discard();
        problems += made.problems;
        continue;
      }
      const step = made === null ? null : { ...made, ...replacementOf([one.step]) };
      if (step !== null) await ledger.checkRemoval(step.removes);
      complete = step !== null && (await isCommitted(ledger, step, signal));
      if (step === null || !complete) break;
      done.push(step);
      for (const fields of run.met()) drift.add(fields);
    }
    const drifted = drift.report(
      (name) => tables.get(name)?.definition,
      (name) => earlier.get(name),
    );
    const lost = signal.aborted ? [] : await ledger.lost();
    for (const file of lost) onProblem(file, null, 'gone from the export; --again makes all of it anew');
    const summary = summaryOf(list, plan, done, complete);
    return { ...summary, problems: summary.problems + problems, lost: lost.length, drift: drifted };
  } finally {
    await shaping.close();
    await ledger.close();
  }
}

/** Where the sources of a step end that begins at one. */
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

const NOTHING_YET = { done: 0, total: 0, records: 0 };

function replacementOf(steps: readonly ExportStep[]): Pick<ExportStep, 'replaces' | 'removes'> {
  return {
    replaces: steps.map(({ step }) => step),
    removes: steps.flatMap(({ files, keeps }) => [...keeps, ...files.map(({ file }) => file)]),
  };
}

async function openLedger(options: ExportOptions, stale: LedgerOptions['isStale']): Promise<Ledger> {
  const { tables, table, format, compression, partition, selection, signal, onProblem } = options;
  const place = await openPlace(options);
  const { DeltaTables } = await import('./delta/delta-tables.ts');
  const names = tables.withNested(table);
  return Ledger.open(place, {
    terms: { table, format, compression, partition, ...selection },
    tablesOf: (id) =>
      format === 'delta' ? new DeltaTables(place.store, { tables, names, partition, id, signal }) : null,
    onKept: (reason) => onProblem(place.url, null, reason),
    isStale: stale,
    signal,
  });
}

/** @returns false when it was interrupted; the next run continues with what there is of it */
async function isCommitted(ledger: Ledger, step: ExportStep, signal: AbortSignal): Promise<boolean> {
  try {
    await ledger.commit(step);
    return true;
  } catch (error) {
    if (!signal.aborted) throw error;
    return false;
  }
}

/**
 * Makes the files again that a step of another machine has listed and not put. They are the same bytes, whoever makes them,
 * so it does no harm when that machine is still at it.
 * @throws MillraceError folder_in_use when they cannot be made here
 */
async function finishStep(ledger: Ledger, list: SourceList, options: StepOptions): Promise<void> {
  const lost = ledger.unfinished;
  if (lost === null) return;
  const here = identitiesIn(list);
  const own = lost.sources.flatMap((source) => here.get(identityOf(source)) ?? []);
  const so = { done: 0, total: own.length, records: 0 };
  const run = new StepRun(
    { ...options, stepBytes: Number.POSITIVE_INFINITY },
    { work: ledger.work, nextStep: lost.step },
    so,
  );
  const made = own.length === lost.sources.length ? await run.run(own) : null;
  const isSame = JSON.stringify(made?.files) === JSON.stringify(lost.files);
  if (!isSame && !options.signal.aborted && lost.problems > 0) {
    // What it could not read is there by now, or less of it is.
    await ledger.passOver(lost);
    return;
  }
  if (!isSame && !options.signal.aborted)
    throw new MillraceError(
      'folder_in_use',
      `step ${lost.step} was begun with other archive files, and ended before its files were there; ` +
        'run that export again where it was begun, or export to another place',
    );
  await ledger.settle();
}

/** What the rows of steps had, by table. */
function earlierOf(steps: readonly ExportStep[]): Map<string, Earlier> {
  const all = new Map<string, { rows: number; filled: Map<string, number> }>();
  for (const { files, filled } of steps) {
    for (const [table, counts] of Object.entries(filled)) {
      const known = all.get(table) ?? { rows: 0, filled: new Map<string, number>() };
      all.set(table, known);
      known.rows += files.reduce((sum, file) => sum + (file.table === table ? file.rows : 0), 0);
      for (const [column, count] of Object.entries(counts))
        known.filled.set(column, (known.filled.get(column) ?? 0) + count);
    }
  }
  return all;
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

/**
 * Opens the place of an export for writing.
 * @throws MillraceError folder_unwritable, folder_in_use, usage
 */
async function openPlace({
  out,
  work = workFolderFor(out),
  storage,
}: Pick<ExportOptions, 'out' | 'work' | 'storage'>): Promise<ExportPlace> {
  const store = await openStore(out, storage);
  const isUrl = isStoreUrl(out);
  try {
    return isUrl ? await StorePlace.open(store, work) : await FolderPlace.open(out, store);
  } catch (error) {
    await store.close();
    throw folderError(isUrl ? work : out, error);
  }
}
