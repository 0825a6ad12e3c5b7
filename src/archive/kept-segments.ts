import { readdir, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Segment } from '../core/archive-segments.ts';
import { hashLine, type ChainTip } from '../lib/chained-log.ts';
import { readIfThere, readPlain } from '../lib/durable.ts';
import { UNFINISHED, writeDurably } from '../lib/new-file.ts';

/** Lines of a chain on their way to the store. */
export interface Pending {
  readonly segment: Segment;
  readonly bytes: Buffer;
  readonly tip: ChainTip;
  readonly files: readonly string[];
}

/** Of the note of the newest segment. */
const NEWEST = 'newest-segment';
const PENDING = /(?:^|\/|\\)segment-(\d{10})-(\d{10})\.jsonl$/;

/** Segments in a writer's folder: each lies there before it is put, so that after a kill one that was put is known. */
export class KeptSegments {
  readonly #folder: string | null;
  readonly #writer: string;
  /** Each with the files that a kill would still list again. */
  readonly #files = new Map<string, Set<string>>();

  /** @param folder null for a writer that lives no longer than its process */
  constructor(folder: string | null, writer: string) {
    this.#folder = folder;
    this.#writer = writer;
  }

  async keep({ segment, bytes, files }: Pending): Promise<void> {
    if (this.#folder === null) return;
    const name = nameOf(segment);
    await writeDurably(this.#folder, name, bytes);
    this.#files.set(join(this.#folder, name), new Set(files));
  }

  /** A kill would not write the line of a file again: its segment goes with the last of them. */
  async forget(file: string): Promise<void> {
    for (const [path, files] of this.#files) {
      if (!files.delete(file) || files.size > 0) continue;
      this.#files.delete(path);
      await unlink(path);
    }
  }

  /**
   * Notes the key of the newest segment that was put. Not synced: after a power cut an older one is noted, or none.
   * Never rejects, as the segment is in its place.
   */
  async note(key: string): Promise<void> {
    if (this.#folder === null) return;
    const path = join(this.#folder, NEWEST);
    try {
      await writeFile(`${path}${UNFINISHED}`, `${key}\n`);
      await rename(`${path}${UNFINISHED}`, path);
    } catch {
      // A full disk, say.
    }
  }

  /** Null when none is noted. */
  noted(): string | null {
    if (this.#folder === null) return null;
    return readIfThere(join(this.#folder, NEWEST))?.trim() ?? null;
  }

  /** What a process before has left, in order. */
  async left(): Promise<Pending[]> {
    const left: Pending[] = [];
    for (const path of await this.#paths()) {
      const [, from, to] = PENDING.exec(path) ?? [];
      const bytes = Buffer.concat(await Array.fromAsync(readPlain(path)));
      const lines = linesOf(bytes);
      const segment = { writer: this.#writer, first: Number(from), last: Number(to) };
      const files = lines.map((line) => (JSON.parse(line) as { readonly file: string }).file);
      this.#files.set(path, new Set(files));
      left.push({ segment, bytes, tip: { n: segment.last, hash: hashLine(lines.at(-1) ?? '') }, files });
    }
    return left;
  }

  async #paths(): Promise<string[]> {
    const folder = this.#folder;
    if (folder === null) return [];
    const names = (await readdir(folder)).filter((name) => PENDING.test(name));
    return names.toSorted().map((name) => join(folder, name));
  }
}

/** Whether a file in a writer's folder is a segment on its way to the store, or a note of one. */
export function isOfSegments(name: string): boolean {
  return PENDING.test(name) || name === NEWEST;
}

function nameOf({ first, last }: Segment): string {
  return `segment-${[first, last].map((number) => String(number).padStart(10, '0')).join('-')}.jsonl`;
}

export function linesOf(bytes: Buffer): string[] {
  return bytes.toString().split('\n').slice(0, -1);
}
