import { hash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppendFile } from './append-file.ts';
import { makeFolder, namesIn, OWNER_ONLY, readIfThere } from './durable.ts';
import { writeDurably } from './new-file.ts';
import { lockInTurn } from './file-lock.ts';
import { membersIn } from './parsed.ts';
import { Serial } from './serial.ts';

/** Number and hash of a line of the chain. */
export interface ChainTip {
  readonly n: number;
  /** Lower-case hex SHA-256 of the line without its line break; of the empty text at the beginning. */
  readonly hash: string;
}

export interface ChainedLogOptions {
  readonly folder: string;
  /** The files are `<name>.jsonl`, `<name>.<number>.jsonl` for rotated ones, `<name>.head` and `<name>.lock`. */
  readonly name: string;
  /** Size at which a file is rotated. */
  readonly maxBytes: number;
  /** Number of rotated files that are kept. */
  readonly keep: number;
}

/** Milliseconds to wait for other processes that write a line. */
const PATIENCE = 10_000;

export const CHAIN_START: ChainTip = { n: 0, hash: hashLine('') };

/**
 * JSON lines, each with the hash of the previous one, for several processes: `{"n","at",…,"prev"}`. A full file is rotated; when the
 * oldest is removed, a line `{"cleared":N}` says up to which number. `<name>.head` has the last line's hash, so that lines cut off at
 * the end are noticed; their numbers stay missing when the chain continues.
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
      // A process ended between writing the line and the head.
      if (last !== null && last.n > tip.n) tip = last;
      let text = '';
      for (const entry of entries) {
        const n = tip.n + 1;
        const line = JSON.stringify({ n, at: new Date().toISOString(), ...entry, prev: tip.hash });
        tip = { n, hash: hashLine(line) };
        text += `${line}\n`;
      }
      await file.append(Buffer.from(text));
      await writeDurably(folder, `${name}.head`, `${JSON.stringify(tip)}\n`, OWNER_ONLY);
    });
  }

  /** Rotates a full file. @returns the number of the last line of the files to remove; null for none */
  async #rotate(): Promise<number | null> {
    const { folder, name, maxBytes, keep } = this.#options;
    const full = await this.#withFile(({ length }, last) => Promise.resolve(length < maxBytes ? null : last));
    if (full === null) return null;
    const rotated = join(folder, `${name}.${String(full.n).padStart(12, '0')}.jsonl`);
    await rename(join(folder, `${name}.jsonl`), rotated);
    const all = rotatedFiles(folder, name);
    return all[all.length - keep - 1]?.upTo ?? null;
  }

  /** @param task called with the current file and its last line; the head says which one a damaged line is */
  async #withFile<T>(task: (file: AppendFile, last: ChainTip | null) => Promise<T>): Promise<T> {
    const { folder, name } = this.#options;
    const { file } = await AppendFile.openLines(join(folder, `${name}.jsonl`), OWNER_ONLY);
    try {
      const line = await file.lineBefore(file.length);
      const { n = readTip(folder, name)?.n ?? 0 } = membersIn(line.toString()) as Partial<ChainTip>;
      return await task(file, file.length === 0 ? null : { n, hash: hashLine(line) });
    } finally {
      await file.close();
    }
  }

  async #clear(upTo: number): Promise<void> {
    const { folder, name } = this.#options;
    for (const file of rotatedFiles(folder, name))
      if (file.upTo <= upTo) await rm(join(folder, file.file), { force: true });
  }
}

/** SHA-256 of a line without its line break, hex. */
export function hashLine(line: string | Buffer): string {
  return hash('sha256', line);
}

/** Rotated files, oldest first; `upTo` is the number of the last line. */
export function rotatedFiles(folder: string, name: string): { file: string; upTo: number }[] {
  return namesIn(folder)
    .filter((file) => file.startsWith(`${name}.`))
    .flatMap((file) => {
      const number = /^\.(\d{12,})\.jsonl$/.exec(file.slice(name.length))?.[1];
      return number === undefined ? [] : [{ file, upTo: Number(number) }];
    })
    .toSorted((a, b) => a.upTo - b.upTo);
}

/** The last line, from the head file; null when nothing was ever written. */
export function readTip(folder: string, name: string): ChainTip | null {
  const text = readIfThere(join(folder, `${name}.head`));
  return text === null ? null : (JSON.parse(text) as ChainTip);
}
