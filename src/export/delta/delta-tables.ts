import { randomUUID } from 'node:crypto';
import { MillraceError } from '../../core/errors.ts';
import { removePermanently } from '../../core/objects.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { type Action, type AddFile, keyOf, pathOf, removalOf, statsOfRows } from './actions.ts';
import { DeltaLog, forgetBefore } from './log.ts';
import { originOf, type Snapshot, unsupported } from './snapshot.ts';
import { columnsOf } from '../../tables/definition.ts';
import type { Tables } from '../../tables/tables.ts';
import type { ExportStep } from '../export-step.ts';
import type { WrittenFile } from '../outputs.ts';
import { evolved, SchemaConflict, schemaOf, DAY } from './schema.ts';

export interface DeltaTerms {
  readonly tables: Tables;
  /** The table that is exported, and those nested in it. */
  readonly names: readonly string[];
  readonly partition: 'dt' | 'none';
  /** Of the export: under it the tables note which steps they have. */
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Name of the folder of rows without a day. */
const NO_DAY = '__HIVE_DEFAULT_PARTITION__';

/** The Delta tables of an export. One commit adds a step's files to a table and notes the step, so that the step can be repeated. */
export class DeltaTables {
  readonly #terms: DeltaTerms;
  readonly #logs: ReadonlyMap<string, DeltaLog>;

  constructor(store: ObjectStore, terms: DeltaTerms) {
    this.#terms = terms;
    this.#logs = new Map(terms.names.map((name) => [name, new DeltaLog(store, `${name}/`)]));
  }

  /**
   * Checks that steps can be added to the tables.
   * @param steps so far: without any, the tables must not exist; the last one may not be in them yet
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

  /** The day is a column, and readers refuse two columns of one name. */
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
      for (const file of this.#had(within(name, files), snapshot)) addOf(file, snapshot, log);
    }
  }

  /** Those of the files that are not in their tables any more: another program has written their rows into its own. */
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

  /** Missing files of the tables, also those that another program wrote. */
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

  /** A step's files that are not part of their tables yet; an erasure may have rewritten the others. */
  async pending({ step, files }: ExportStep): Promise<WrittenFile[]> {
    const done = new Set<string>();
    for (const [name, log] of this.#logs)
      if (this.#has(step, await log.snapshot(this.#terms.signal))) done.add(name);
    return files.filter(({ table }) => !done.has(table));
  }

  /**
   * Makes a step's files part of their tables, and removes those that it replaces. They must have their names.
   * @param isPassedOver tables that do not have the step's files yet only note that they never get them
   */
  async commit({ step, files, removes }: ExportStep, isPassedOver = false): Promise<void> {
    const operationParameters = { mode: 'Append', partitionBy: JSON.stringify(this.#partitionBy) };
    for (const [name, log] of this.#logs) {
      const own = files.filter(({ table }) => table === name).map((file) => this.#add(name, file));
      const adds = isPassedOver && own.length > 0 ? [this.#txn(step, this.#without(step))] : own;
      const replaced = within(name, removes);
      const version = await log.commit(
        { operation: 'WRITE', operationParameters },
        (snapshot) => {
          if (this.#has(step, snapshot)) return null;
          const schema = this.#schemaFor(name, log, snapshot);
          if (adds.length + replaced.length + schema.length === 0) return null;
          const gone = this.#had(replaced, snapshot).map((file) => removalOf(addOf(file, snapshot, log)));
          return [...schema, ...gone, ...adds, this.#txn(step, this.#terms.id)];
        },
        this.#terms.signal,
      );
      if (replaced.length > 0) await this.#forget(log, step, replaced, version);
    }
  }

  get #partitionBy(): readonly string[] {
    return this.#terms.partition === 'dt' ? [DAY] : [];
  }

  #txn(version: number, appId: string): Action {
    return { txn: { appId, version, lastUpdated: Date.now() } };
  }

  #has(step: number, { txns }: Snapshot): boolean {
    return (txns.get(this.#terms.id)?.version ?? 0) >= step;
  }

  /** Under this id a table notes a step that was passed over. */
  #without(step: number): string {
    return `${this.#terms.id} without step ${step}`;
  }

  /** Without files of steps that were passed over, which the table never had. */
  #had(files: readonly string[], { txns }: Snapshot): string[] {
    return files.filter((file) => !txns.has(this.#without(stepOf(file))));
  }

  /** Actions that give the table the present columns; none when it has them. @throws MillraceError table_changed, usage */
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
      const schemaString = evolved(metaData.schemaString, wanted);
      return schemaString === null ? [] : [{ metaData: { ...metaData, schemaString } }];
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

  #add(name: string, { file, bytes, rows }: WrittenFile): Action {
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

  /** Deletes the files that were replaced, and what the log has of them: it could be of erased users. */
  async #forget(
    log: DeltaLog,
    step: number,
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
    await removePermanently(log.store, gone, signal);
    if (version !== null) await forgetBefore(log, version, signal);
  }
}

/** Files of a table, relative to it. */
function within(table: string, files: readonly string[]): string[] {
  return files.flatMap((file) => (file.startsWith(`${table}/`) ? [file.slice(table.length + 1)] : []));
}

/** The step that wrote a file, by its name. */
function stepOf(file: string): number {
  return Number(/\/?part-(\d+)[^/]*$/.exec(file)?.[1] ?? 0);
}

/** The table's entry of a file of ours: the file, or what an erasure has left of it. @throws MillraceError table_changed */
function addOf(file: string, { files }: Snapshot, log: DeltaLog): AddFile {
  for (const add of files.values()) {
    const key = keyOf(add.path);
    if (key !== null && originOf(key) === file) return add;
  }
  throw changed(log, `${file} has been replaced, and nothing tells where its rows are`);
}

function changed(log: DeltaLog, reason: string): MillraceError {
  return new MillraceError('table_changed', `${log.url}: ${reason}; export to another place`);
}
