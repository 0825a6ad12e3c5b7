import { hash } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppendFile } from './append-file.ts';
import { errorCode, makeFolder, OWNER_ONLY, readIfThere } from './durable.ts';
import { writeDurably } from './new-file.ts';
import { lockInTurn } from './file-lock.ts';
import { Serial } from './serial.ts';

/** Where a chain stands: number and hash of a line. */
export interface ChainTip {
  readonly n: number;
  /** Lower-case hex SHA-256 of the line without its line break; of the empty text before the first line. */
  readonly hash: string;
}

export interface ChainedLogOptions {
  readonly folder: string;
  /** The files are `<name>.jsonl`, `<name>.<number>.jsonl` for what was before, `<name>.head` and `<name>.lock`. */
  readonly name: string;
  /** Size at which a file is put aside. */
  readonly maxBytes: number;
  /** Files put aside that are kept. */
  readonly keep: number;
}

/** Milliseconds to wait for others that write a line. */
const PATIENCE = 10_000;

export const CHAIN_START: ChainTip = { n: 0, hash: hashLine('') };

/**
 * JSON lines, each with the hash of the one before, for several processes: `{"n","at",…,"prev"}`. A file that is full is put
 * aside; when the oldest is removed, a line `{"cleared":N}` says up to which number. `<name>.head` holds the last line's
 * hash, so that a tail cut off shows as well; what was cut off stays missing when the chain continues.
 */
export class ChainedLog {
  readonly #options: ChainedLogOptions;
  readonly #serial = new Serial();

  constructor(options: ChainedLogOptions) {
    this.#options = options;
  }

  /** The lines are on disk once it resolves. @throws the system's error */
  append(entries: readonly object[]): Promise<void> {
    return this.#serial.run(async () => {
      const { folder, name } = this.#options;
      makeFolder(folder, 0o700);
      const lock = await lockInTurn(join(folder, `${name}.lock`), PATIENCE);
      try {
        const cleared = await this.#rotate();
        await this.#write([...(cleared === null ? [] : [{ cleared }]), ...entries]);
        if (cleared !== null) await this.#clear(cleared);
      } finally {
        lock.release();
      }
    });
  }

  async #write(entries: readonly object[]): Promise<void> {
    const { folder, name } = this.#options;
    await this.#withFile(async (file, last) => {
      let tip = readTip(folder, name) ?? CHAIN_START;
      // Written, and not in the head: the process died in between.
      if (last !== null && last.n > tip.n) tip = last;
      let text = '';
      for (const entry of entries) {
        const line = JSON.stringify({
          n: tip.n + 1,
          at: new Date().toISOString(),
          ...entry,
          prev: tip.hash,
        });
        tip = { n: tip.n + 1, hash: hashLine(line) };
        text += `${line}\n`;
      }
      await file.append(Buffer.from(text));
      await writeDurably(folder, `${name}.head`, `${JSON.stringify(tip)}\n`, OWNER_ONLY);
    });
  }

  /** Puts a full file aside. @returns the number of the last line that is now one too many; null when none is */
  async #rotate(): Promise<number | null> {
    const { folder, name, maxBytes, keep } = this.#options;
    const full = await this.#withFile(({ length }, last) => Promise.resolve(length < maxBytes ? null : last));
    if (full === null) return null;
    const aside = join(folder, `${name}.${String(full.n).padStart(12, '0')}.jsonl`);
    await rename(join(folder, `${name}.jsonl`), aside);
    const all = await asideFiles(folder, name);
    return all[all.length - keep - 1]?.upTo ?? null;
  }

  /** @param task given the file that is written, and its last line */
  async #withFile<T>(task: (file: AppendFile, last: ChainTip | null) => Promise<T>): Promise<T> {
    const { folder, name } = this.#options;
    const { file } = await AppendFile.openLines(join(folder, `${name}.jsonl`), OWNER_ONLY);
    try {
      const line = await file.lineBefore(file.length);
      return await task(file, file.length === 0 ? null : { n: numberOf(line), hash: hashLine(line) });
    } finally {
      await file.close();
    }
  }

  async #clear(upTo: number): Promise<void> {
    const { folder, name } = this.#options;
    for (const file of await asideFiles(folder, name))
      if (file.upTo <= upTo) await rm(join(folder, file.file), { force: true });
  }
}

/** SHA-256 of a line without its line break, hex; of the empty string for what the first line of a chain follows. */
export function hashLine(line: string | Buffer): string {
  return hash('sha256', line);
}

/** What was put aside, oldest first; `upTo` is the number of the last line. */
export async function asideFiles(folder: string, name: string): Promise<{ file: string; upTo: number }[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  return names
    .flatMap((file) => {
      const number = file.startsWith(`${name}.`)
        ? /^\.(\d{12,})\.jsonl$/.exec(file.slice(name.length))
        : null;
      return number === null ? [] : [{ file, upTo: Number(number[1]) }];
    })
    .toSorted((a, b) => a.upTo - b.upTo);
}

/** Null when nothing was ever written. */
export function readTip(folder: string, name: string): ChainTip | null {
  const text = readIfThere(join(folder, `${name}.head`));
  return text === null ? null : (JSON.parse(text) as ChainTip);
}

function numberOf(line: Buffer): number {
  try {
    return (JSON.parse(line.toString('utf8')) as { n: number }).n;
  } catch {
    return 0;
  }
}
