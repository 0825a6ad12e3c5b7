import type { RecordOpener } from '../core/sealed-record.ts';
import { readAhead } from '../lib/read-ahead.ts';
import { FieldSums, type TableFields } from '../tables/learned/field-sums.ts';
import { isWithinDay } from './days.ts';
import type { ExportStep } from './export-step.ts';
import type { StepLog } from './step-log.ts';
import type { ExportOptions, ExportProgress } from './options.ts';
import { Outputs, type OutputsOptions } from './outputs.ts';
import type { ExportFormat, ExportReject } from './rows.ts';
import type { Shaping } from './shaping.ts';
import type { ShapedUnit } from './shaping-jobs.ts';
import { isErased, type Problem, type SourceBytes, sourceBytes } from './source-bytes.ts';
import type { Source } from './archive-files.ts';
import { typesOf } from './types.ts';
import { UnitWriter } from './unit.ts';

/** The table of rejects: which record has no row, and why. It never has values. */
const REJECTS = '_rejects';
/** Archive files that are decompressed at the same time, and bytes that each may have waiting. */
const AHEAD = {
  width: 3,
  most: 8 * 2 ** 20,
  weightOf: ({ bytes }: SourceBytes) => Math.max(bytes.length, 2 ** 19),
  isEarly: () => true,
};

export type StepOptions = Omit<ExportOptions, 'format'> & {
  readonly format: ExportFormat;
  readonly keys: RecordOpener | undefined;
  readonly shaping: Shaping;
};

/** Number of archive files that were read when a unit ended, and the file it ended in. */
interface Reached {
  readonly file: string;
  readonly read: number;
}

/** Makes one step: complete files of rows, which are not part of the export yet. */
export class StepRun {
  readonly #options: StepOptions;
  readonly #step: number;
  readonly #outputs: Outputs;
  readonly #before: Omit<ExportProgress, 'file'>;
  readonly #unit = new UnitWriter((file, line, reason) => {
    this.#note({ kind: 'problem', file, line, reason });
  });
  /** Units that are being shaped, in their order. */
  readonly #shaping: {
    readonly shaped: Promise<ShapedUnit>;
    readonly size: number;
    readonly reached: Reached;
  }[] = [];
  readonly #counts = { records: 0, rejects: 0, problems: 0, erased: 0, sealed: 0 };
  readonly #withoutTable = new Map<string, number>();
  readonly #unknown = new Set<string>();
  readonly #met = new FieldSums();
  /** Unreadable lines by file, and the file itself; two archives can have a file of the same name. */
  readonly #faults = new Map<string, number>();
  #units = 0;
  #bytes = 0;

  constructor(
    options: StepOptions,
    { work, nextStep: step }: Pick<StepLog, 'work' | 'nextStep'>,
    before: Omit<ExportProgress, 'file'>,
  ) {
    this.#options = options;
    this.#step = step;
    this.#before = before;
    const join: OutputsOptions['join'] = (table, parts) => options.shaping.join(table, parts);
    this.#outputs = new Outputs({ ...options, work, step, join });
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#met.all();
  }

  /** Reads as many of the sources as a step takes. Returns null when it was interrupted. */
  async run(sources: readonly Source[]): Promise<ExportStep | null> {
    const { keys, signal, stepBytes, today, shaping, places } = this.#options;
    const read: { readonly source: Source; readonly lines: number }[] = [];
    const sizes = new Map<Source, number>();
    try {
      await shaping.expect(sources, places);
      for (const [root, own] of Map.groupBy(sources, (source) => source.root))
        places.at(root).expect(own.map(({ file }) => file));
      const open = (source: Source): AsyncIterable<SourceBytes> => {
        const onBytes = ({ length }: Buffer): void =>
          void sizes.set(source, (sizes.get(source) ?? 0) + length);
        return sourceBytes(places.at(source.root), source.file, { signal, opener: keys, onBytes });
      };
      for await (const [source, pieces] of readAhead(sources, { ...AHEAD, open })) {
        const before = read.at(-1)?.source;
        const isWhole = before !== undefined && today !== undefined && isWithinDay(before, source, today);
        if (this.#bytes >= stepBytes && !isWhole) break;
        const count = await this.#read(source.file, pieces, read.length);
        const short = this.#checkSize(source, sizes.get(source) ?? 0);
        read.push({ source, lines: count + short });
      }
      const last = { file: read.at(-1)?.source.file ?? '', read: read.length };
      if (!this.#unit.isEmpty) await this.#pass(last, this.#units === 0);
      while (this.#shaping.length > 0) await this.#takeFirst();
      this.#show(last);
      const files = await this.#outputs.finish();
      return {
        step: this.#step,
        replaces: [],
        sources: read.map(({ source: { root, file, sha256 }, lines }) => {
          const problems = this.#faults.get(file) ?? 0;
          return { root, file, sha256, problems, records: Math.max(lines - problems, 0) };
        }),
        files,
        removes: [],
        keeps: [],
        ...this.#counts,
        without_table: Object.fromEntries(this.#withoutTable),
        filled: Object.fromEntries(this.#met.all().map(({ table, filled }) => [table, counted(filled)])),
        types: typesOf(files, this.#options.tables),
        destroyed: keys?.destroyed ?? 0,
      };
    } catch (error) {
      await this.#outputs.abandon();
      if (signal.aborted) return null;
      throw error;
    }
  }

  /** @returns number of lines, also unreadable ones */
  async #read(file: string, pieces: AsyncIterable<SourceBytes>, read: number): Promise<number> {
    let faults = 0;
    this.#unit.begin(file);
    for await (const { bytes, opened, problems, release } of pieces) {
      this.#bytes += bytes.length;
      this.#counts.sealed += opened;
      problems.forEach((problem) => this.#note(problem));
      faults += problems.filter(({ line }) => line === null).length;
      for (let from = 0; from < bytes.length;) {
        const taken = this.#unit.add(bytes.subarray(from));
        if (taken === 0) await this.#pass({ file, read });
        from += taken;
      }
      release?.();
    }
    return this.#unit.end(faults > 0) + faults;
  }

  /** An uncompressed file that is cut may end with a whole line. @returns number of problems */
  #checkSize({ file, bytes }: Source, read: number): 0 | 1 {
    if (bytes === null || read === bytes || this.#faults.has(file)) return 0;
    const reason = `it has ${read} bytes, and its manifest says ${bytes}`;
    this.#note({ kind: 'problem', file, line: null, reason });
    return 1;
  }

  /** Passes the unit to the threads, when they have room for it. @param isAll it is the only one */
  async #pass(reached: Reached, isAll = false): Promise<void> {
    const { size } = this.#unit;
    // A unit with a very long line waits for all others, so that it gets the thread that had the last such unit.
    const room = Math.max(0, this.#options.shaping.ahead - size);
    while (this.#shaping.reduce((sum, waiting) => sum + waiting.size, 0) > room) await this.#takeFirst();
    this.#units += 1;
    const shaped = this.#options.shaping.shape(this.#unit.take(), isAll);
    // `#takeFirst` throws it.
    shaped.catch(() => undefined);
    this.#shaping.push({ shaped, size, reached });
  }

  async #takeFirst(): Promise<void> {
    const first = this.#shaping.shift();
    if (first === undefined) return;
    const { batches, records, rejects, problems, withoutTable, unknown, met, text } = await first.shaped;
    this.#unit.giveBack(text);
    for (const batch of batches) await this.#outputs.add(batch);
    this.#counts.records += records;
    for (const problem of problems) this.#note(problem);
    for (const type of withoutTable) this.#withoutTable.set(type, (this.#withoutTable.get(type) ?? 0) + 1);
    for (const field of unknown) {
      const name = `${field[0]} ${field[1]}`;
      if (this.#unknown.has(name)) continue;
      this.#unknown.add(name);
      this.#options.onUnknown(...field);
    }
    for (const fields of met) this.#met.add(fields);
    if (rejects.length > 0) await this.#writeRejects(rejects);
    this.#show(first.reached);
  }

  #note(problem: Problem): void {
    const { file, line, reason } = problem;
    if (isErased(problem)) {
      this.#counts.erased += 1;
      return;
    }
    this.#counts.problems += 1;
    this.#faults.set(file, (this.#faults.get(file) ?? 0) + 1);
    this.#options.onProblem(file, line, reason);
  }

  async #writeRejects(rejects: readonly ExportReject[]): Promise<void> {
    this.#counts.rejects += rejects.length;
    for (const reject of rejects) this.#options.onReject(reject);
    const lines = new TextEncoder().encode(rejects.map((reject) => `${JSON.stringify(reject)}\n`).join(''));
    await this.#outputs.add({
      table: REJECTS,
      folder: '',
      rows: rejects.length,
      content: { lines, packed: false },
    });
  }

  #show({ file, read }: Reached): void {
    const { done, total, records } = this.#before;
    this.#options.onProgress({ done: done + read, total, records: records + this.#counts.records, file });
  }
}

function counted(filled: TableFields['filled']): Record<string, number> {
  return Object.fromEntries([...filled].filter(([, count]) => count > 0));
}
