import { randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { folderError, MillraceError, messageOf } from '../core/errors.ts';
import { syncFolder } from '../lib/durable.ts';
import { jsonIn } from '../lib/parsed.ts';
import { continuesRun } from '../lib/work-folder.ts';
import type { DeltaTables } from './delta/delta-tables.ts';
import { type ExportStep, exportStep, standingIn } from './export-step.ts';
import type { WrittenFile } from './outputs.ts';
import { type ExportTarget, notIn } from './export-target.ts';

/** A file of rows in the folder of its table, or of a day of it, with the number of its step. */
const ROWS = /^[^_/][^/]*\/(?:[^/]+\/)*part-(\d{6})(?:-\d+)?\.[^/]+$/;

/**
 * @param steps number of steps in the log
 * @throws MillraceError usage when the log, or its end, is missing: its rows would be there a second time
 */
async function refuseLaterFiles(
  { store, url }: ExportTarget,
  steps: number,
  signal: AbortSignal,
): Promise<void> {
  for await (const { key } of store.list('', signal))
    if (Number(ROWS.exec(key)?.[1] ?? 0) > steps)
      throw new MillraceError(
        'usage',
        `${url} has files of rows, such as ${key}, that _export.jsonl does not list: put all of it back, or name another folder`,
      );
}

const first = z.object({ export: z.record(z.string(), z.unknown()), id: z.uuid() });

export interface StepLogOptions {
  /** Options that all steps of an export have in common. */
  readonly terms: Readonly<Record<string, unknown>>;
  /** Makes the Delta tables of an export, where it has some. */
  readonly tablesOf: (id: string) => DeltaTables | null;
  readonly signal: AbortSignal;
  /** True when the sources of a step have changed, and this run replaces it. */
  isStale(step: ExportStep): boolean;
  /** The store keeps something of a file that was removed. */
  onKept(reason: string): void;
}

/**
 * The steps of an export. Order of a step: its files are complete and durable in the work folder; its line is written; the files get their
 * names and become part of their Delta tables; the files that they replace are removed. A crash before the line leaves
 * nothing; after a later crash, `open` completes the step.
 */
export class StepLog {
  readonly work: string;
  readonly #target: ExportTarget;
  readonly #options: StepLogOptions;
  readonly #steps: ExportStep[];
  readonly #tables: DeltaTables | null;
  #missing: readonly WrittenFile[] = [];
  /** False while the last step has its line and not all of its files have their names: they are in `work`. */
  #isSettled = true;
  /** The last step, when its files were passed over and have to be made again. */
  passedOver: ExportStep | null = null;

  private constructor(target: ExportTarget, options: StepLogOptions, steps: ExportStep[], id: string) {
    this.work = target.work;
    this.#target = target;
    this.#options = options;
    this.#steps = steps;
    this.#tables = options.tablesOf(id);
  }

  /**
   * @param target closed with the log
   * @throws MillraceError folder_unwritable, folder_in_use, table_changed; usage when the target holds another export
   */
  static async open(target: ExportTarget, options: StepLogOptions): Promise<StepLog> {
    const { terms } = options;
    try {
      const read = await readStepLog(target.lines());
      continuesRun(target.url, read.found === null ? null : JSON.stringify(read.found), {
        kind: 'export',
        fingerprint: JSON.stringify(terms),
        resume: true,
        otherwise: `${describe(read.found ?? {})}; name another folder`,
      });
      const id = read.id ?? randomUUID();
      if (read.found === null) await options.tablesOf('')?.check([]);
      await refuseLaterFiles(target, read.steps.length, options.signal);
      if (read.found === null) await target.append({ export: terms, id }, 0);
      const log = new StepLog(target, options, read.steps, id);
      await log.#tables?.check(read.steps);
      await log.#resume();
      return log;
    } catch (error) {
      await target.close();
      throw folderError(target.url, error);
    }
  }

  get nextStep(): number {
    return (this.#steps.at(-1)?.step ?? 0) + 1;
  }

  /** Steps that are not replaced, the oldest first. */
  get standing(): ExportStep[] {
    return standingIn(this.#steps);
  }

  /** The last step, when files of it are missing because another machine began it and ended before it had put them. */
  get unfinished(): ExportStep | null {
    return this.#missing.length === 0 ? null : (this.#steps.at(-1) ?? null);
  }

  /** Steps that are not replaced, and whose rows another program has written into its own files. */
  async rewritten(): Promise<ExportStep[]> {
    const files = this.standing.flatMap((step) => step.files.map(({ file }) => file));
    const found = (await this.#tables?.rewritten(files)) ?? new Set();
    return this.standing.filter(
      (step) => step.keeps.length > 0 || step.files.some(({ file }) => found.has(file)),
    );
  }

  /** Missing files of steps that are not replaced, or of Delta tables. */
  async lost(): Promise<string[]> {
    const files = this.standing.flatMap((step) => step.files);
    if (this.#tables === null) return notIn(this.#target.store, files, this.#options.signal);
    return this.#tables.lost();
  }

  /** @throws MillraceError table_changed when files cannot be replaced */
  async checkRemoval(files: readonly string[]): Promise<void> {
    await this.#tables?.checkRemoval(files);
  }

  /** Adds a step, whose files are complete in `work`. */
  async commit(done: ExportStep): Promise<void> {
    await syncFolder(this.work);
    await this.#target.append(done, this.#steps.length + 1);
    this.#isSettled = false;
    this.#steps.push(done);
    await this.settle();
  }

  /**
   * Completes the last step: gives its files their names, removes what it replaces, and what is left in `work`. If files are
   * missing, `unfinished` is the step.
   */
  async settle(): Promise<void> {
    const { signal, onKept } = this.#options;
    const last = this.#steps.at(-1);
    this.#isSettled = false;
    if (last !== undefined) {
      const due = (await this.#tables?.pending(last)) ?? last.files;
      const missing = await this.#target.put(due, signal);
      // A table that lists a missing file cannot be read.
      this.#missing =
        this.#tables === null || missing.length > 0 ? missing : await this.#rowsLost(due, signal);
      if (this.#missing.length > 0) return;
      await this.#tables?.commit(last);
      for (const reason of await this.#target.remove(last.removes, signal)) onKept(reason);
    }
    this.#isSettled = true;
    await this.discard();
  }

  async #rowsLost(due: readonly WrittenFile[], signal: AbortSignal): Promise<WrittenFile[]> {
    const lost: WrittenFile[] = [];
    for (const facts of due)
      if (facts.file.endsWith('.parquet') && (await this.#target.store.head(facts.file, signal)) === null)
        lost.push(facts);
    return lost;
  }

  /** Completes the last step of an earlier run; a stale one is passed over, because it may hold what an erasure has removed since. */
  async #resume(): Promise<void> {
    const last = this.#steps.at(-1);
    if (last === undefined || !this.#options.isStale(last)) await this.settle();
    else await this.passOver(last);
  }

  /** Leaves out the last step's files, but removes those that it replaces. */
  async passOver(last: ExportStep): Promise<void> {
    const { signal, onKept } = this.#options;
    this.#missing = [];
    this.passedOver = last;
    await this.#tables?.commit(last, true);
    for (const reason of await this.#target.remove(last.removes, signal)) onKept(reason);
    this.#isSettled = true;
    await this.discard();
  }

  /** Discards unfinished files and closes the target. */
  async close(): Promise<void> {
    if (this.#isSettled) await this.discard().catch(() => undefined);
    await this.#target.close();
  }

  /** Removes the files of a step that has no line. */
  async discard(): Promise<void> {
    for (const name of await readdir(this.work)) await rm(join(this.work, name), { recursive: true });
  }
}

/** The steps in the lines of a log, with the terms and the id in its first line; null when there is none. @throws Error for other lines */
export async function readStepLog(lines: AsyncIterable<string>) {
  const steps: ExportStep[] = [];
  let begun: z.output<typeof first> | null = null;
  try {
    for await (const line of lines) {
      const value = jsonIn(line);
      if (begun === null) begun = first.parse(value);
      else steps.push(exportStep.parse(value));
      const { step = steps.length } = steps.at(-1) ?? {};
      if (step !== steps.length) throw new Error(`step ${steps.length} is missing`);
    }
  } catch (error) {
    const detail =
      error instanceof z.ZodError ? 'not a line of an export, or of another format' : messageOf(error);
    throw new Error(`_export.jsonl: ${detail}`, { cause: error });
  }
  return { steps, found: begun?.export ?? null, id: begun?.id ?? null };
}

function describe(terms: Readonly<Record<string, unknown>>): string {
  return Object.entries(terms)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' ') : String(value)}`)
    .join(', ');
}
