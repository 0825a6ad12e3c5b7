import { randomUUID } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import { removeForGood } from '../../core/objects.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { type Action, keyOf, pathOf, removalOf, statsOfRows } from './actions.ts';
import { DeltaLog, forgetBefore } from './log.ts';
import { originOf, type Snapshot, unsupported } from './snapshot.ts';
import { columnsOf } from '../../tables/definition.ts';
import type { Tables } from '../../tables/tables.ts';
import type { ExportStep } from '../export-step.ts';
import { evolved, SchemaConflict, schemaOf, DAY } from './schema.ts';

export interface DeltaTerms {
  readonly tables: Tables;
  /** The table that is exported, and those nested in it. */
  readonly names: readonly string[];
  readonly partition: 'dt' | 'none';
  /** Of the export: the tables note under it which steps they have. */
  readonly id: string;
  readonly signal: AbortSignal;
}

type StepFile = ExportStep['files'][number];

/** What stands for no day in the name of a folder. */
const NO_DAY = '__HIVE_DEFAULT_PARTITION__';

/**
 * The Delta tables of an export, one a table. A step's files are part of a table from one commit on, which notes the step:
 * whoever settles the step again finds it there.
 */
export class DeltaTables {
  readonly #terms: DeltaTerms;
  readonly #logs: ReadonlyMap<string, DeltaLog>;

  constructor(store: ObjectStore, terms: DeltaTerms) {
    this.#terms = terms;
    this.#logs = new Map(terms.names.map((name) => [name, new DeltaLog(store, `${name}/`)]));
  }

  /**
   * Looks for what would keep a step from becoming part of the tables, before there is one.
   * @param steps so far: without one no table is there, either; of the last one, tables may not know yet
   * @throws MillraceError table_changed, usage
   */
  async check(steps: readonly ExportStep[]): Promise<void> {
    const known = new Set(steps.slice(0, -1).flatMap(({ files }) => files.map(({ table }) => table)));
    for (const [name, log] of this.#logs) {
      this.#checkDay(name);
      const snapshot = await log.snapshot(this.#terms.signal);
      if (!snapshot.exists && known.has(name))
        throw changed(log, 'its log (_delta_log) is gone; put it back');
      if (!snapshot.exists) continue;
      if (steps.length === 0 && !snapshot.txns.has(this.#terms.id))
        throw new MillraceError(
          'usage',
          `${log.url} is a table already, and not of this export; name another place`,
        );
      this.#schemaFor(name, log, snapshot);
    }
  }

  /** The day is a column, and readers refuse two of one name. */
  #checkDay(name: string): void {
    const { tables, partition } = this.#terms;
    const columns = columnsOf(tables.entry(name).definition);
    if (partition === 'dt' && columns.some((column) => column.name.toLowerCase() === DAY))
      throw new MillraceError(
        'usage',
        `table ${name} has a column dt, and the day of a row would be another: use --partition none`,
      );
  }

  /** @throws MillraceError table_changed when another writer has taken files out that are to be replaced */
  async checkRemoval(files: readonly string[]): Promise<void> {
    for (const [name, log] of this.#logs) {
      const snapshot = await log.snapshot(this.#terms.signal);
      for (const file of this.#had(within(name, files), snapshot)) standingFor(file, snapshot, log);
    }
  }

  /** Which of these files are not in their tables any more: another program has written their rows into its own. */
  async rewritten(files: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (const [name, log] of this.#logs) {
      const snapshot = await log.snapshot(this.#terms.signal);
      const there = new Set([...snapshot.files.values()].map(({ path }) => originOf(keyOf(path) ?? '')));
      for (const file of this.#had(within(name, files), snapshot))
        if (!there.has(file) && this.#has(stepOf(file), snapshot)) found.add(`${name}/${file}`);
    }
    return found;
  }

  /** Files that the tables consist of, whoever wrote them, and that are not there. */
  async lost(): Promise<string[]> {
    const lost: string[] = [];
    for (const [name, log] of this.#logs) {
      const { files } = await log.snapshot(this.#terms.signal);
      const there = new Set<string>();
      for await (const { key } of log.store.list(log.prefix, this.#terms.signal)) there.add(key);
      for (const { path } of files.values()) {
        const key = keyOf(path);
        if (key !== null && !there.has(log.prefix + key)) lost.push(`${name}/${key}`);
      }
    }
    return lost;
  }

  /** A step's files that are not part of their tables yet: of the others there may be only what an erasure has left. */
  async pending({ step, files }: ExportStep): Promise<StepFile[]> {
    const done = new Set<string>();
    for (const [name, log] of this.#logs)
      if (this.#has(step, await log.snapshot(this.#terms.signal))) done.add(name);
    return files.filter(({ table }) => !done.has(table));
  }

  /** Makes a step's files part of their tables, and removes those it replaces. They must have their names. */
  async commit(step: ExportStep): Promise<void> {
    await this.#commit(step, false);
  }

  /** The same for a step that is to be replaced: tables that do not have its files yet never get them, and note that. */
  async passOver(step: ExportStep): Promise<void> {
    await this.#commit(step, true);
  }

  async #commit(step: ExportStep, isPassedOver: boolean): Promise<void> {
    for (const [name, log] of this.#logs) {
      const files = step.files.filter(({ table }) => table === name);
      const removes = within(name, step.removes);
      let adds: readonly Action[] | null = null;
      const version = await log.commit(
        {
          operation: 'WRITE',
          operationParameters: { mode: 'Append', partitionBy: JSON.stringify(this.#partitionBy) },
        },
        (snapshot) => {
          if (this.#has(step.step, snapshot)) return null;
          const part = { name, log, step: step.step, removes };
          if (isPassedOver && files.length > 0)
            return this.#actions(
              { ...part, adds: [this.#txn(step.step, this.#without(step.step))] },
              snapshot,
            );
          adds ??= files.map((file) => this.#add(name, file));
          return this.#actions({ ...part, adds }, snapshot);
        },
        this.#terms.signal,
      );
      if (removes.length > 0) await this.#forget(log, step, removes, version);
    }
  }

  get #partitionBy(): readonly string[] {
    return this.#terms.partition === 'dt' ? [DAY] : [];
  }

  #actions({ name, log, step, adds, removes }: Part, snapshot: Snapshot): Action[] | null {
    const schema = this.#schemaFor(name, log, snapshot);
    if (adds.length === 0 && removes.length === 0 && schema.length === 0) return null;
    const removed = this.#had(removes, snapshot).map((file) => removalOf(standingFor(file, snapshot, log)));
    return [...schema, ...removed, ...adds, this.#txn(step, this.#terms.id)];
  }

  #txn(version: number, appId: string): Action {
    return { txn: { appId, version, lastUpdated: Date.now() } };
  }

  #has(step: number, { txns }: Snapshot): boolean {
    return (txns.get(this.#terms.id)?.version ?? 0) >= step;
  }

  /** What a table notes of a step that was passed over. */
  #without(step: number): string {
    return `${this.#terms.id} without step ${step}`;
  }

  /** Files of the table's steps: those of a step that was passed over never became part of it. */
  #had(files: readonly string[], { txns }: Snapshot): string[] {
    return files.filter((file) => !txns.has(this.#without(stepOf(file))));
  }

  /** What has to be said of the table, before rows with today's columns can be in it. */
  #schemaFor(name: string, log: DeltaLog, snapshot: Snapshot): Action[] {
    const { tables, partition } = this.#terms;
    const { definition } = tables.entry(name);
    const wanted = schemaOf(definition, partition);
    if (!snapshot.exists) return this.#created(name, definition.description, JSON.stringify(wanted));
    const reason = unsupported(snapshot);
    const { metaData } = snapshot;
    if (reason !== null || metaData === null) throw changed(log, reason ?? 'it has no metadata');
    if (metaData.partitionColumns.join() !== this.#partitionBy.join())
      throw changed(log, `it is partitioned by ${metaData.partitionColumns.join() || 'nothing'}`);
    try {
      const { schema, changed: isChanged } = evolved(metaData.schemaString, wanted);
      return isChanged ? [{ metaData: { ...metaData, schemaString: schema } }] : [];
    } catch (error) {
      if (!(error instanceof SchemaConflict)) throw error;
      throw new MillraceError('usage', `${log.url}: ${error.message}; export to another place`, {
        cause: error,
      });
    }
  }

  #created(name: string, description: string, schemaString: string): Action[] {
    const metaData = {
      id: randomUUID(),
      name,
      description,
      format: { provider: 'parquet', options: {} },
      schemaString,
      partitionColumns: this.#partitionBy,
      configuration: {},
      createdTime: Date.now(),
    };
    return [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData }];
  }

  #add(name: string, { file, bytes, rows }: StepFile): Action {
    const key = file.slice(name.length + 1);
    const [, day = null] = /^dt=([^/]+)\//.exec(key) ?? [];
    return {
      add: {
        path: pathOf(key),
        partitionValues: this.#terms.partition === 'dt' ? { [DAY]: day === NO_DAY ? null : day } : {},
        size: bytes,
        modificationTime: Date.now(),
        dataChange: true,
        stats: statsOfRows(rows),
      },
    };
  }

  /** Removes the files that were replaced, and what the log says of them: what is gone from an archive is gone here. */
  async #forget(
    log: DeltaLog,
    { step }: ExportStep,
    removes: readonly string[],
    committed: number | null,
  ): Promise<void> {
    const { id, signal } = this.#terms;
    const version =
      committed ?? (await log.find(({ txn }) => txn?.appId === id && txn.version === step, signal));
    const { tombstones } = await log.snapshot(signal);
    const gone = [...tombstones.keys()].flatMap((path) => {
      const key = keyOf(path);
      return key !== null && removes.includes(originOf(key)) ? [log.prefix + key] : [];
    });
    await removeForGood(log.store, gone, signal);
    if (version !== null) await forgetBefore(log, version, signal);
  }
}

interface Part {
  readonly name: string;
  readonly log: DeltaLog;
  readonly step: number;
  readonly adds: readonly Action[];
  readonly removes: readonly string[];
}

/** Files of a table, relative to it. */
function within(table: string, files: readonly string[]): string[] {
  return files.flatMap((file) => (file.startsWith(`${table}/`) ? [file.slice(table.length + 1)] : []));
}

/** The step that wrote a file, by its name. */
function stepOf(file: string): number {
  return Number(/\/?part-(\d+)[^/]*$/.exec(file)?.[1] ?? 0);
}

/** What is in the table of a file we wrote: itself, or what an erasure has left of it. */
function standingFor(file: string, { files }: Snapshot, log: DeltaLog) {
  for (const add of files.values()) {
    const key = keyOf(add.path);
    if (key !== null && originOf(key) === file) return add;
  }
  throw changed(log, `${file} has been replaced, and nothing tells where its rows are`);
}

function changed(log: DeltaLog, reason: string): MillraceError {
  return new MillraceError('table_changed', `${log.url}: ${reason}; export to another place`);
}
