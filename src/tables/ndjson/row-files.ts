import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { naming, syncFolder } from '../../lib/durable.ts';
import { NewFile } from '../../lib/new-file.ts';

/** The file of what was rejected. */
const REJECTS = '_rejects';

const REJECTS_PIECE = 64 * 1024;

/**
 * A file of NDJSON for each table, such as `meals.ndjson`, and `_rejects.ndjson`. Until all are complete, their names end with
 * `.part`; then they replace files of the same names.
 */
export class RowFiles {
  readonly #folder: string;
  /** That of the rejects is made with the first one. */
  readonly #files: Map<string, NewFile>;
  #rejects = '';
  #rejecting = Promise.resolve();

  private constructor(folder: string, files: Map<string, NewFile>) {
    this.#folder = folder;
    this.#files = files;
  }

  /**
   * Fills the files of these tables and gives them their names; removes them when that fails.
   * @throws MillraceError folder_unwritable; what `fill` throws
   */
  static async fill<T>(
    folder: string,
    names: readonly string[],
    fill: (files: RowFiles) => Promise<T>,
  ): Promise<{ readonly made: T; readonly paths: readonly string[] }> {
    const files = await RowFiles.#open(folder, names);
    try {
      return { made: await fill(files), paths: await files.#finish() };
    } catch (error) {
      await files.#rejecting.catch(() => undefined);
      for (const file of files.#files.values()) await file.abandon();
      throw error;
    }
  }

  static async #open(folder: string, names: readonly string[]): Promise<RowFiles> {
    const files = new Map<string, NewFile>();
    try {
      await mkdir(folder, { recursive: true });
      for (const name of names) files.set(name, await NewFile.create(join(folder, partOf(name))));
    } catch (error) {
      for (const file of files.values()) await file.abandon();
      throw new MillraceError('folder_unwritable', `${folder}: ${messageOf(error)}`, { cause: error });
    }
    return new RowFiles(folder, files);
  }

  /** Appends whole lines; one call at a time for each name. */
  async write(name: string, rows: Buffer): Promise<void> {
    const file = this.#files.get(name);
    if (file === undefined) throw new Error(`no file for ${name}`);
    await file.write(rows).catch((error: unknown) => {
      throw naming(file.path, error);
    });
  }

  /** Bytes of each file, for `truncateTo`. */
  sizes(): ReadonlyMap<string, number> {
    return new Map([...this.#files].map(([name, { bytes }]) => [name, bytes]));
  }

  /** Removes the rows that were written since; no write may be running. */
  async truncateTo(sizes: ReadonlyMap<string, number>): Promise<void> {
    for (const [name, bytes] of sizes) if (name !== REJECTS) await this.#files.get(name)?.cutTo(bytes);
  }

  /** Adds a rejected row. It is written later; `fill` throws errors of that. */
  reject(line: string): void {
    this.#rejects += `${line}\n`;
    if (this.#rejects.length >= REJECTS_PIECE) this.#writeRejects();
  }

  #writeRejects(): void {
    const rows = Buffer.from(this.#rejects);
    this.#rejects = '';
    this.#rejecting = this.#rejecting.then(async () => {
      if (!this.#files.has(REJECTS))
        this.#files.set(REJECTS, await NewFile.create(join(this.#folder, partOf(REJECTS))));
      await this.write(REJECTS, rows);
    });
    this.#rejecting.catch(() => undefined);
  }

  /** Gives the files their names, durably. Returns the paths; an empty file of rejects is removed. */
  async #finish(): Promise<string[]> {
    if (this.#rejects !== '') this.#writeRejects();
    await this.#rejecting;
    for (const file of this.#files.values()) await file.finish();
    const paths: string[] = [];
    for (const [name, { path: part }] of this.#files) {
      const path = join(this.#folder, `${name}.ndjson`);
      await rename(part, path);
      paths.push(path);
    }
    // Rejects of an earlier run may be rows now.
    if (!this.#files.has(REJECTS)) await rm(join(this.#folder, `${REJECTS}.ndjson`), { force: true });
    await syncFolder(this.#folder);
    return paths;
  }
}

function partOf(name: string): string {
  return `${name}.ndjson.part`;
}
