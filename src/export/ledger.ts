import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { folderError, messageOf } from '../core/errors.ts';
import { AppendFile } from '../lib/append-file.ts';
import { ensureFolder, errorCode, readPlain, syncFolder } from '../lib/durable.ts';
import { cutLines } from '../lib/lines.ts';
import { goesOn, WorkFolder } from '../lib/work-folder.ts';
import { temporaryName } from './outputs.ts';

/** Lists what an export holds and what it is made of; JSON lines. Its name sets it apart from data. */
const LEDGER = '_export.jsonl';
/** Folder for what is not finished. */
const WORK = '_work';

const count = z.number().int().nonnegative();
const inside = z
  .string()
  .refine(
    (path) => path.split('/').every((level) => !['', '.', '..'].includes(level)) && !path.includes('\0'),
  );

const step = z.object({
  step: z.number().int().positive(),
  /** Steps whose files these replace, because what they were made of has changed. */
  replaces: z.array(count),
  sources: z.array(z.object({ root: z.string(), file: z.string(), sha256: z.string() })),
  files: z.array(
    z.object({ file: inside, table: z.string(), rows: count, bytes: count, sha256: z.string() }),
  ),
  /** Files of the steps replaced. */
  removes: z.array(inside),
  records: count,
  rejects: count,
  without_table: z.record(z.string(), count).default({}),
  /** Rows in which each column had a value, by table: what later steps no longer have is told by it. */
  filled: z.record(z.string(), z.record(z.string(), count)).default({}),
  problems: count,
  erased: count,
  /** Sealed records that were opened, and how many keys had been destroyed by then. */
  sealed: count,
  destroyed: count,
});

/** A part of an export that is there as a whole or not at all; one line of the ledger. */
export type ExportStep = z.output<typeof step>;

const first = z.object({ export: z.record(z.string(), z.unknown()) });

/**
 * What an export folder holds. Order of a step: its files complete and durable in `_work/`, then its line, then the files
 * get their names and those it replaces go. A crash before the line leaves nothing, one after it is made good at `open`.
 */
export class Ledger {
  readonly folder: string;
  readonly #own: WorkFolder;
  readonly #file: AppendFile;
  readonly #steps: ExportStep[];

  private constructor(own: WorkFolder, file: AppendFile, steps: ExportStep[]) {
    this.folder = own.path;
    this.#own = own;
    this.#file = file;
    this.#steps = steps;
  }

  /**
   * @param terms what every step of the export is made with: a folder holds one export
   * @throws MillraceError folder_unwritable, folder_in_use; usage when the folder holds another export
   */
  static async open(folder: string, terms: Readonly<Record<string, unknown>>): Promise<Ledger> {
    let own: WorkFolder | null = null;
    let file: AppendFile | null = null;
    try {
      own = await WorkFolder.take(folder);
      await ensureFolder(folder, WORK);
      ({ file } = await AppendFile.openLines(join(folder, LEDGER)));
      const { steps, found } = await readLedger(file.path);
      goesOn(folder, found === null ? null : JSON.stringify(found), {
        kind: 'export',
        fingerprint: JSON.stringify(terms),
        resume: true,
        otherwise: `${describe(found ?? {})}; name another folder`,
      });
      const ledger = new Ledger(own, file, steps);
      if (found === null) await ledger.#append({ export: terms });
      await ledger.#settle();
      return ledger;
    } catch (error) {
      await file?.close();
      own?.release();
      throw folderError(folder, error);
    }
  }

  get work(): string {
    return join(this.folder, WORK);
  }

  get nextStep(): number {
    return (this.#steps.at(-1)?.step ?? 0) + 1;
  }

  /** Steps that stand, the oldest first. */
  get standing(): ExportStep[] {
    const replaced = new Set(this.#steps.flatMap(({ replaces }) => replaces));
    return this.#steps.filter(({ step: number }) => !replaced.has(number));
  }

  /** Makes a step's files the export's. They must be complete in `work`. */
  async commit(done: ExportStep): Promise<void> {
    await syncFolder(this.work);
    await this.#append(done);
    this.#steps.push(done);
    await this.#settle();
  }

  /** Forgets what is unfinished and releases the folder. */
  async close(): Promise<void> {
    await this.#clear().catch(() => undefined);
    await this.#file.close();
    this.#own.release();
  }

  /** Brings the last step's files to their places; removes what it replaces and what never became part of a step. */
  async #settle(): Promise<void> {
    const last = this.#steps.at(-1);
    const folders = new Set<string>();
    for (const { file } of last?.files ?? []) {
      folders.add(dirname(file));
      await ensureFolder(this.folder, dirname(file));
      await rename(join(this.work, temporaryName(file)), join(this.folder, file)).catch((error: unknown) => {
        // It has its name already.
        if (errorCode(error) !== 'ENOENT') throw error;
      });
    }
    for (const folder of folders) await syncFolder(join(this.folder, folder));
    for (const file of last?.removes ?? []) await rm(join(this.folder, file), { force: true });
    await this.#clear();
  }

  async #clear(): Promise<void> {
    for (const name of await readdir(this.work)) await rm(join(this.work, name), { recursive: true });
  }

  #append(line: object): Promise<void> {
    return this.#file.append(Buffer.from(`${JSON.stringify(line)}\n`));
  }
}

/**
 * What an export says of itself, without its lock: another command may be at it. A last step whose files have not got their
 * names yet is left out; the next run sees to that.
 * @throws the system's error when there is no export, or Error when its ledger cannot be read
 */
export async function readExport(folder: string): Promise<{ steps: ExportStep[]; terms: unknown }> {
  const { steps, found: terms } = await readLedger(join(folder, LEDGER));
  const last = steps.at(-1);
  if (last === undefined) return { steps, terms };
  const unfinished = new Set(await readdir(join(folder, WORK)));
  const isSettled =
    last.files.every(({ file }) => !unfinished.has(temporaryName(file))) &&
    last.removes.every((file) => !existsSync(join(folder, file)));
  return { steps: isSettled ? steps : steps.slice(0, -1), terms };
}

interface Found {
  readonly steps: ExportStep[];
  readonly found: Record<string, unknown> | null;
}

async function readLedger(path: string): Promise<Found> {
  const steps: ExportStep[] = [];
  let found: Record<string, unknown> | null = null;
  try {
    for await (const lines of cutLines(readPlain(path))) {
      for (const { bytes, number, ended } of lines) {
        // Its writer is at it, or was cut short: the next run removes it.
        if (!ended) continue;
        const value = parse(String(bytes));
        if (number === 1) found = first.parse(value).export;
        else steps.push(step.parse(value));
      }
    }
  } catch (error) {
    const detail = error instanceof z.ZodError ? 'not a line of an export' : messageOf(error);
    throw new Error(`${LEDGER}: ${detail}`, { cause: error });
  }
  return { steps, found };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function describe(terms: Readonly<Record<string, unknown>>): string {
  return Object.entries(terms)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(' ') : String(value)}`)
    .join(', ');
}
