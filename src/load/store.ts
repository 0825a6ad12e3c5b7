import type { RecordOpener } from '../core/sealed-record.ts';
import type { TableFields } from '../warehouse/learned/field-sums.ts';
import type { Tables } from '../warehouse/tables.ts';
import { inTransaction, RowsRefused, type Database } from './database.ts';
import {
  createLedger,
  readLoads,
  removeLoads,
  renameArchive,
  reviveDuplicates,
  type Load,
} from './ledger.ts';
import type { LoadOptions } from './options.ts';
import type { LoadPlan } from './plan.ts';
import { LoadStep, type StepCounts } from './step.ts';
import { ensureTables, type LoadedTables } from './tables.ts';

/** Where archives are loaded, with its ledger of what was. */
export interface LoadStore {
  /**
   * Makes the ledger and the tables that are wanted, and completes those that were made before.
   * @throws MillraceError usage when a table was loaded whose definition is not known now
   */
  prepare(known: Tables, wanted: readonly string[]): Promise<LoadedTables>;
  readLoads(): Promise<readonly Load[]>;
  renameArchive(from: string, to: string): Promise<void>;
  /** Removes all that came with some loads. @returns whether files that were loaded before have to be loaded again */
  remove(tables: LoadedTables, loads: readonly number[]): Promise<boolean>;
  /** Loads the first of some files, as many as make a step: all of them, or nothing. */
  step(work: StepWork): Promise<StepDone>;
  close(): Promise<void>;
}

export interface StepWork {
  readonly tables: LoadedTables;
  readonly opener: RecordOpener | undefined;
  readonly files: LoadPlan['files'];
  readonly options: LoadOptions;
  /** @param done files that have been read */
  onShow(done: number, counts: StepCounts, file: string): void;
}

export interface StepDone {
  readonly files: number;
  /** Those that took the place of what was loaded of them before. */
  readonly replaced: number;
  readonly counts: StepCounts;
  readonly met: readonly TableFields[];
  /** Whether files that were loaded before have to be loaded again. */
  readonly revived: boolean;
}

/** A database whose transactions hold rows and ledger together from the first statement on. */
export class TransactionStore implements LoadStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async prepare(known: Tables, wanted: readonly string[]): Promise<LoadedTables> {
    return inTransaction(this.#database, async () => {
      await createLedger(this.#database);
      return ensureTables(this.#database, known, wanted);
    });
  }

  readLoads(): Promise<readonly Load[]> {
    return inTransaction(this.#database, () => readLoads(this.#database));
  }

  renameArchive(from: string, to: string): Promise<void> {
    return inTransaction(this.#database, () => renameArchive(this.#database, from, to));
  }

  remove(tables: LoadedTables, loads: readonly number[]): Promise<boolean> {
    return inTransaction(this.#database, async () => {
      await removeLoads(this.#database, tables.names, loads);
      return reviveDuplicates(this.#database);
    });
  }

  async step(work: StepWork): Promise<StepDone> {
    try {
      return await this.#step(work);
    } catch (error) {
      if (!(error instanceof RowsRefused)) throw error;
      return this.#step(work);
    }
  }

  async #step({ tables, opener, files, options, onShow }: StepWork): Promise<StepDone> {
    const step = new LoadStep(this.#database, tables, opener, options);
    let done = 0;
    let replaced = 0;
    await inTransaction(this.#database, async () => {
      for (const { source, replaces } of files) {
        const show = (): void => onShow(done, step.counts, source.file);
        await step.load(source, replaces, show);
        done += 1;
        if (replaces.length > 0) replaced += 1;
        show();
        if (step.bytes >= options.stepBytes) break;
      }
    });
    return { files: done, replaced, counts: step.counts, met: step.met(), revived: step.revived };
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}
