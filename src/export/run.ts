import { basename } from 'node:path';
import { nameOf } from '../archive/place.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { Drift, type Earlier } from '../warehouse/learned/drift.ts';
import { Ledger, type ExportStep } from './ledger.ts';
import type { ExportOptions, ExportSummary } from './options.ts';
import { Shaping } from './shaping.ts';
import { listSources, type Source, type SourceList } from './sources.ts';
import { StepRun } from './step.ts';

/** Files of one step: its line in the ledger lists them all. */
const STEP_SOURCES = 1000;

/**
 * Exports finished files of archives to files of table rows. It goes in steps, each of which is there as a whole or not
 * at all; a further run exports what has come since, and exports again what has changed.
 * @throws MillraceError archive_unreadable, archive_sealed, folder_unwritable, or usage when the folder holds another
 *   export
 */
export async function runExport(options: ExportOptions): Promise<ExportSummary> {
  const { out, tables, table, format, compression, partition, selection, signal } = options;
  const entry = tables.get(table);
  if (entry === undefined) throw new TypeError(`there is no table ${table}`);
  const list = await listSources(options.paths, options.places, selection, (type) =>
    tables.takes(entry, type),
  );
  for (const { file, reason } of list.problems) options.onProblem(file, null, reason);
  const opener = await options.opener?.();
  const shaping = new Shaping({ tables, table, format, compression, partition, selection });
  const ledger = await Ledger.open(out, { table, format, compression, partition, ...selection });
  try {
    const stale = ledger.standing.filter((step) => options.again || isStale(step, list, opener));
    const fresh = new Set(ledger.standing.filter((step) => !stale.includes(step)).flatMap(identities));
    const sources = list.sources.filter((source) => !fresh.has(identityOf(source)));
    const replacing = {
      replaces: stale.map(({ step }) => step),
      removes: stale.flatMap(({ files }) => files.map(({ file }) => file)),
    };
    const before = list.sources.length - sources.length;
    const earlier = earlierOf(ledger.standing);
    const drift = new Drift();
    const done: ExportStep[] = [];
    let at = 0;
    let records = 0;
    let complete = sources.length === 0 && stale.length === 0;
    while (!complete && !signal.aborted) {
      const so = { done: at, total: sources.length, records };
      const run = new StepRun({ ...options, keys: opener, shaping }, ledger, so);
      const made = await run.run(sources.slice(at, at + STEP_SOURCES));
      if (made === null) break;
      at += made.sources.length;
      records += made.records;
      complete = at === sources.length;
      // The old goes with the last of the new: until then rows are there twice, never not at all.
      const step = complete ? { ...made, ...replacing } : made;
      await ledger.commit(step);
      done.push(step);
      for (const fields of run.met()) drift.add(fields);
    }
    const drifted = drift.report(
      (name) => tables.get(name)?.definition,
      (name) => earlier.get(name),
    );
    return { ...summaryOf(list, before, done, complete), drift: drifted };
  } finally {
    await shaping.close();
    await ledger.close();
  }
}

/**
 * True when a file it was made of is another now, or gone, or when keys have been destroyed since: nothing in a sealed
 * archive tells whose records are in which file. Files of archives that were not named are left alone.
 */
function isStale(step: ExportStep, { present, roots }: SourceList, opener?: RecordOpener): boolean {
  if (step.sealed > 0 && (opener?.destroyed ?? 0) > step.destroyed) return true;
  return step.sources.some(({ root, file, sha256 }) => {
    const now = present.get(nameOf(root, file));
    return now === undefined ? roots.has(root) : now !== sha256;
  });
}

/** A file is the same after its archive has moved, and when another folder around it was named. */
function identityOf({ file, sha256 }: Pick<Source, 'file' | 'sha256'>): string {
  return `${sha256} ${basename(file)}`;
}

function identities({ sources }: ExportStep): string[] {
  return sources.map(identityOf);
}

/** What the rows of steps had, by table. Steps of earlier versions did not note it. */
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
  before: number,
  steps: readonly ExportStep[],
  complete: boolean,
): Omit<ExportSummary, 'drift'> {
  const sum = (of: (step: ExportStep) => number): number => steps.reduce((all, step) => all + of(step), 0);
  const files = steps.flatMap((step) => step.files);
  const rows: Record<string, number> = {};
  for (const { table, rows: count } of files) rows[table] = (rows[table] ?? 0) + count;
  const withoutTable: Record<string, number> = {};
  for (const [type, count] of steps.flatMap((step) => Object.entries(step.without_table)))
    withoutTable[type] = (withoutTable[type] ?? 0) + count;
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
    without_table: withoutTable,
    problems: problems.length + sum((step) => step.problems),
    erased: sum(({ erased }) => erased),
    complete,
  };
}
