import { readArchiveChunks, type ArchiveItem } from '../archive/read.ts';
import { MillraceError } from '../core/errors.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import type { TableFields } from '../warehouse/learned/drift.ts';
import type { ExportStep, Ledger } from './ledger.ts';
import type { ExportOptions, ExportProgress } from './options.ts';
import { Outputs } from './outputs.ts';
import { Rows, type ExportReject } from './rows.ts';
import { isWanted } from './select.ts';
import type { Source } from './sources.ts';

/** A table of its own beside the others: what could not become a row, and why. Never what it held. */
const REJECTS = '_rejects';

export type StepOptions = ExportOptions & { readonly keys: RecordOpener | undefined };

/** One step: files of the archive into files of rows that are complete, and not yet the export's. */
export class StepRun {
  readonly #options: StepOptions;
  readonly #step: number;
  readonly #outputs: Outputs;
  readonly #rows: Rows;
  readonly #before: Omit<ExportProgress, 'file'>;
  #rejected: ExportReject[] = [];
  readonly #counts = { records: 0, rejects: 0, problems: 0, erased: 0, sealed: 0 };
  readonly #withoutTable = new Map<string, number>();
  #bytes = 0;

  constructor(
    options: StepOptions,
    { work, nextStep }: Pick<Ledger, 'work' | 'nextStep'>,
    before: Omit<ExportProgress, 'file'>,
  ) {
    const { format, compression, partition, tables, table } = options;
    this.#options = options;
    this.#step = nextStep;
    this.#before = before;
    this.#outputs = new Outputs({ work, step: this.#step, format, compression, tables });
    this.#rows = new Rows({
      tables,
      table,
      partition,
      format,
      onReject: (reject) => this.#rejected.push(reject),
      onUnknown: options.onUnknown,
      onWithoutTable: (type) => this.#withoutTable.set(type, (this.#withoutTable.get(type) ?? 0) + 1),
    });
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#rows.met();
  }

  /** Reads as many of the sources as a step takes; null when it was interrupted. */
  async run(sources: readonly Source[]): Promise<ExportStep | null> {
    const read: Source[] = [];
    try {
      for (const source of sources) {
        if (this.#bytes >= this.#options.stepBytes) break;
        await this.#read(source, read.length);
        read.push(source);
      }
      await this.#rows.flush(this.#outputs);
      return {
        step: this.#step,
        replaces: [],
        sources: read,
        files: await this.#outputs.finish(),
        removes: [],
        ...this.#counts,
        without_table: Object.fromEntries(this.#withoutTable),
        filled: Object.fromEntries(this.#rows.met().map(({ table, filled }) => [table, counted(filled)])),
        destroyed: this.#options.keys?.destroyed ?? 0,
      };
    } catch (error) {
      await this.#outputs.abandon();
      if (this.#options.signal.aborted) return null;
      throw error;
    }
  }

  async #read({ root, file }: Source, nth: number): Promise<void> {
    const { keys, signal, selection, tables, table } = this.#options;
    const entry = tables.get(table);
    const takes = (type: string): boolean => entry !== undefined && tables.takes(entry, type);
    for await (const items of readArchiveChunks(root, file, signal, undefined, keys)) {
      for (const item of items) {
        if (item.kind === 'problem') {
          this.#note(item);
          continue;
        }
        this.#bytes += item.text.length;
        if (item.sealed) this.#counts.sealed += 1;
        if (!isWanted(item.record, selection, takes)) continue;
        this.#counts.records += 1;
        const added = this.#rows.add(item, this.#outputs);
        if (added !== null) await added;
        if (this.#rejected.length > 0) await this.#writeRejects();
        if (this.#counts.records % 1000 === 0) this.#show(file, nth);
      }
    }
    this.#show(file, nth + 1);
  }

  #note({ file, line, reason, sealed }: ArchiveItem & { kind: 'problem' }): void {
    if (sealed?.why === 'no_keys') throw new MillraceError('archive_sealed', `${file}: ${reason}`);
    if (sealed?.why === 'erased') {
      this.#counts.erased += 1;
      return;
    }
    this.#counts.problems += 1;
    this.#options.onProblem(file, line, reason);
  }

  async #writeRejects(): Promise<void> {
    const rejects = this.#rejected;
    this.#rejected = [];
    this.#counts.rejects += rejects.length;
    for (const reject of rejects) this.#options.onReject(reject);
    const lines = Buffer.from(rejects.map((reject) => `${JSON.stringify(reject)}\n`).join(''));
    await this.#outputs.write(REJECTS, '', lines, rejects.length);
  }

  #show(file: string, read: number): void {
    const { done, total, records } = this.#before;
    this.#options.onProgress({ done: done + read, total, records: records + this.#counts.records, file });
  }
}

function counted(filled: TableFields['filled']): Record<string, number> {
  return Object.fromEntries([...filled].filter(([, count]) => count > 0));
}
