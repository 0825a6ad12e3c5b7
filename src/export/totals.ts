import type { ExportStep } from './ledger.ts';
import type { ExportSummary } from './options.ts';

/** Adds up the steps of one run. */
export class Totals {
  before = 0;
  records = 0;
  #steps = 0;
  #read = 0;
  #files = 0;
  #bytes = 0;
  #replaced = 0;
  #rejects = 0;
  #problems: number;
  #erased = 0;
  readonly #rows = new Map<string, number>();

  constructor(problems: number) {
    this.#problems = problems;
  }

  add({ sources, files, removes, records, rejects, problems, erased }: ExportStep): void {
    this.#steps += 1;
    this.#read += sources.length;
    this.#replaced += removes.length;
    this.records += records;
    this.#rejects += rejects;
    this.#problems += problems;
    this.#erased += erased;
    for (const { table, rows, bytes } of files) {
      this.#files += 1;
      this.#bytes += bytes;
      this.#rows.set(table, (this.#rows.get(table) ?? 0) + rows);
    }
  }

  summary(
    list: { readonly passedOver: number; readonly unfinished: number },
    complete: boolean,
  ): ExportSummary {
    return {
      steps: this.#steps,
      read: this.#read,
      before: this.before,
      passed_over: list.passedOver,
      unfinished: list.unfinished,
      records: this.records,
      rows: Object.fromEntries(this.#rows),
      files: this.#files,
      bytes: this.#bytes,
      replaced: this.#replaced,
      rejects: this.#rejects,
      problems: this.#problems,
      erased: this.#erased,
      complete,
    };
  }
}
