import { readdir, rename, unlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { segmentKey, type Segment } from './segments.ts';
import { hashLine, type ChainTip } from '../lib/chained-log.ts';
import { ignoreMissing, readIfThere, readPlain } from '../lib/durable.ts';
import { UNFINISHED, writeDurably } from '../lib/new-file.ts';

/** Lines of a chain on their way to the store. */
export interface Pending {
  readonly segment: Segment;
  readonly bytes: Buffer;
  readonly tip: ChainTip;
  readonly files: readonly string[];
}

/** File with the key of the newest segment. */
const NEWEST = 'newest-segment';
const PENDING = /(?:^|\/|\\)segment-(\d{10})-(\d{10})\.jsonl$/;

/** Segments in a writer's folder, each kept from before it is put, to recognise it after a kill. */
export class KeptSegments {
  readonly #folder: string;
  readonly #writer: string;
  /** By path, the files whose lines a writer would add again after a kill. */
  readonly #files = new Map<string, Set<string>>();

  constructor(folder: string, writer: string) {
    this.#folder = folder;
    this.#writer = writer;
  }

  async keep({ segment, bytes, files }: Pending): Promise<void> {
    const name = `segment-${basename(segmentKey(segment))}`;
    await writeDurably(this.#folder, name, bytes);
    this.#files.set(join(this.#folder, name), new Set(files));
  }

  /** Notes that the line of a file cannot be added again; deletes its segment with the last of them. May be called again. */
  async forget(file: string): Promise<void> {
    for (const [path, files] of this.#files) {
      if (!files.has(file)) continue;
      if (files.size === 1) {
        await unlink(path).catch(ignoreMissing);
        this.#files.delete(path);
      }
      files.delete(file);
    }
  }

  /** Notes the key of the newest segment. Not synced, so a power cut can leave an older one. Never rejects. */
  async note(key: string): Promise<void> {
    const path = join(this.#folder, NEWEST);
    try {
      await writeFile(`${path}${UNFINISHED}`, `${key}\n`);
      await rename(`${path}${UNFINISHED}`, path);
    } catch {
      // The segment is stored; only its note is missing.
    }
  }

  noted(): string | null {
    return readIfThere(join(this.#folder, NEWEST))?.trim() ?? null;
  }

  /** Segments that an earlier process has left, in order. */
  async left(): Promise<Pending[]> {
    const left: Pending[] = [];
    const names = (await readdir(this.#folder)).filter((name) => PENDING.test(name));
    for (const name of names.toSorted()) {
      const path = join(this.#folder, name);
      const [, from, to] = PENDING.exec(name) ?? [];
      const bytes = Buffer.concat(await Array.fromAsync(readPlain(path)));
      const lines = linesOf(bytes);
      const segment = { writer: this.#writer, first: Number(from), last: Number(to) };
      const files = lines.map((line) => (JSON.parse(line) as { readonly file: string }).file);
      this.#files.set(path, new Set(files));
      left.push({ segment, bytes, tip: { n: segment.last, hash: hashLine(lines.at(-1) ?? '') }, files });
    }
    return left;
  }
}

/** Whether a file in a writer's folder is a kept segment, or the note. */
export function isOfSegments(name: string): boolean {
  return PENDING.test(name) || name === NEWEST;
}

export function linesOf(bytes: Buffer): string[] {
  return bytes.toString().split('\n').slice(0, -1);
}
