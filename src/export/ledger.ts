import { randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { folderError, messageOf } from '../core/errors.ts';
import { syncFolder } from '../lib/durable.ts';
import { jsonIn } from '../lib/parsed.ts';
import { goesOn } from '../lib/work-folder.ts';
import type { DeltaTables } from './delta/delta-tables.ts';
import { type ExportStep, exportStep } from './export-step.ts';
import type { WrittenFile } from './outputs.ts';
import { type ExportPlace, notIn } from './place.ts';

const first = z.object({ export: z.record(z.string(), z.unknown()), id: z.uuid() });

/** Makes the Delta tables of an export, where it has some. */
export type TablesOf = (id: string) => DeltaTables | null;

export interface LedgerOptions {
  /** What every step of the export is made with: one place holds one export. */
  readonly terms: Readonly<Record<string, unknown>>;
  readonly tablesOf: TablesOf;
  readonly signal: AbortSignal;
  /** Whether what a step is made of has changed: then this run replaces it. */
  isStale(step: ExportStep): boolean;
  /** What was removed is kept all the same, by the store. */
  onKept(reason: string): void;
}

/**
 * What an export holds. Order of a step: its files complete and durable in the work folder, then its line, then the files
 * get their names, become part of their tables where they are Delta's, and those they replace go. A crash before the line
 * leaves nothing, one after it is made good at `open`.
 */
export class Ledger {
  readonly work: string;
  readonly #place: ExportPlace;
  readonly #options: LedgerOptions;
  readonly #steps: ExportStep[];
  readonly #tables: DeltaTables | null;
  #missing: readonly WrittenFile[] = [];
  /** The last step has its line, and not all of its files have their names: what is in `work` is needed. */
  #isSettled = true;
  #passedOver: ExportStep | null = null;

  private constructor(place: ExportPlace, options: LedgerOptions, steps: ExportStep[], id: string) {
    this.work = place.work;
    this.#place = place;
    this.#options = options;
    this.#steps = steps;
    this.#tables = options.tablesOf(id);
  }

  /**
   * @param place the ledger's from now on
   * @throws MillraceError folder_unwritable, folder_in_use, table_changed; usage when the place holds another export
   */
  static async open(place: ExportPlace, options: LedgerOptions): Promise<Ledger> {
    const { terms } = options;
    try {
      let read = await readLedger(place.lines());
      goesOn(place.url, read.found === null ? null : JSON.stringify(read.found), {
        kind: 'export',
        fingerprint: JSON.stringify(terms),
        resume: true,
        otherwise: `${describe(read.found ?? {})}; name another folder`,
      });
      if (read.found === null) {
        await options.tablesOf('')?.check([]);
        await place.append({ export: terms, id: randomUUID() }, 0);
        read = await readLedger(place.lines());
      }
      const ledger = new Ledger(place, options, read.steps, read.id ?? '');
      await ledger.#tables?.check(read.steps);
      await ledger.#resume();
      return ledger;
    } catch (error) {
      await place.close();
      throw folderError(place.url, error);
    }
  }

  get nextStep(): number {
    return (this.#steps.at(-1)?.step ?? 0) + 1;
  }

  /** Steps that stand, the oldest first. */
  get standing(): ExportStep[] {
    const replaced = new Set(this.#steps.flatMap(({ replaces }) => replaces));
    return this.#steps.filter(({ step: number }) => !replaced.has(number));
  }

  /** The last step, when files of it are lost: another machine began it, and was ended before it had put them. */
  get unfinished(): ExportStep | null {
    return this.#missing.length === 0 ? null : (this.#steps.at(-1) ?? null);
  }

  /** Steps that stand, and whose rows another program has written into files of its own. */
  async rewritten(): Promise<ExportStep[]> {
    const files = this.standing.flatMap((step) => step.files.map(({ file }) => file));
    const found = (await this.#tables?.rewritten(files)) ?? new Set();
    return this.standing.filter(
      (step) => step.keeps.length > 0 || step.files.some(({ file }) => found.has(file)),
    );
  }

  /** Files of the steps that stand, or logs of their tables, that are not there. */
  async lost(): Promise<string[]> {
    const files = this.standing.flatMap((step) => step.files);
    if (this.#tables === null) return notIn(this.#place.store, files, this.#options.signal);
    return this.#tables.lost();
  }

  /** A step whose files never came to be the export's: what stands in its place is to be made. */
  get passedOver(): ExportStep | null {
    return this.#passedOver;
  }

  /** Tells whether files can be replaced. @throws MillraceError table_changed */
  async checkRemoval(files: readonly string[]): Promise<void> {
    await this.#tables?.checkRemoval(files);
  }

  /** Makes a step's files the export's. They must be complete in `work`. */
  async commit(done: ExportStep): Promise<void> {
    await syncFolder(this.work);
    await this.#place.append(done, this.#steps.length + 1);
    this.#isSettled = false;
    this.#steps.push(done);
    await this.settle();
  }

  /**
   * Brings the last step's files to their places; removes what it replaces and what never became part of a step. Says by
   * `unfinished` that it could not.
   */
  async settle(): Promise<void> {
    const { signal, onKept } = this.#options;
    const last = this.#steps.at(-1);
    this.#isSettled = false;
    if (last !== undefined) {
      const due = (await this.#tables?.pending(last)) ?? last.files;
      const missing = await this.#place.put(due, signal);
      // A table that lists what is not there cannot be read at all.
      this.#missing =
        this.#tables === null || missing.length > 0 ? missing : await this.#rowsLost(due, signal);
      if (this.#missing.length > 0) return;
      await this.#tables?.commit(last);
      for (const reason of await this.#place.remove(last.removes, signal)) onKept(reason);
    }
    this.#isSettled = true;
    await this.discard();
  }

  async #rowsLost(due: readonly WrittenFile[], signal: AbortSignal): Promise<WrittenFile[]> {
    const lost: WrittenFile[] = [];
    for (const facts of due)
      if (isParquet(facts.file) && (await this.#place.store.head(facts.file, signal)) === null)
        lost.push(facts);
    return lost;
  }

  /**
   * Settles what an earlier run may have left. Of a step that is to be replaced no file is brought: it may hold what an erasure
   * has taken out of the archive since.
   */
  async #resume(): Promise<void> {
    const last = this.#steps.at(-1);
    if (last === undefined || !this.#options.isStale(last)) await this.settle();
    else await this.passOver(last);
  }

  /** Brings none of the last step's files; what it replaces goes all the same. */
  async passOver(last: ExportStep): Promise<void> {
    const { signal, onKept } = this.#options;
    this.#missing = [];
    this.#passedOver = last;
    await this.#tables?.passOver(last);
    for (const reason of await this.#place.remove(last.removes, signal)) onKept(reason);
    this.#isSettled = true;
    await this.discard();
  }

  /** Forgets what is unfinished and releases the place. */
  async close(): Promise<void> {
    if (this.#isSettled) await this.discard().catch(() => undefined);
    await this.#place.close();
  }

  /** Forgets files of a step that is not to be. */
  async discard(): Promise<void> {
    for (const name of await readdir(this.work)) await rm(join(this.work, name), { recursive: true });
  }
}

interface Found {
  readonly steps: ExportStep[];
  readonly found: Record<string, unknown> | null;
  readonly id: string | undefined;
}

export async function readLedger(lines: AsyncIterable<string>): Promise<Found> {
  const steps: ExportStep[] = [];
  let begun: z.output<typeof first> | null = null;
  try {
    for await (const line of lines) {
      const value = jsonIn(line);
      if (begun === null) begun = first.parse(value);
      else steps.push(exportStep.parse(value));
    }
  } catch (error) {
    const detail =
      error instanceof z.ZodError ? 'not a line of an export, or of another format' : messageOf(error);
    throw new Error(`_export.jsonl: ${detail}`, { cause: error });
  }
  return { steps, found: begun?.export ?? null, id: begun?.id };
}

function isParquet(file: string): boolean {
  return file.endsWith('.parquet');
}

function describe(terms: Readonly<Record<string, unknown>>): string {
  return Object.entries(terms)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' ') : String(value)}`)
    .join(', ');
}
