import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { MillraceError } from '../core/errors.ts';
import { readWhole, removePermanently } from '../core/objects.ts';
import type { ObjectStore } from '../core/storage.ts';
import { isRecord } from '../lib/parsed.ts';
import { temporaryName, type WrittenFile } from './outputs.ts';
import { exportStep } from './export-step.ts';
import { ExportTarget, takeWorkFolder } from './export-target.ts';

/** Prefix of the log's lines, an object each. */
const LOG = '_export/';

/**
 * An export in an object store. Files are made in a local folder that one command at a time writes. Between machines the log
 * decides: each of its lines is an object that only one run can write, and no file is put before the line that lists it.
 */
export class ExportStore extends ExportTarget {
  /** Lines of the log that this run knows. */
  #lines = 0;

  /** @throws FolderRefused, or the system's error */
  static async open(store: ObjectStore, folder: string): Promise<ExportStore> {
    return new ExportStore(await takeWorkFolder(folder), store);
  }

  async *lines(): AsyncGenerator<string> {
    this.#lines = 0;
    for await (const line of linesInStore(this.store)) {
      this.#lines += 1;
      yield line;
    }
  }

  async append(line: object, number: number): Promise<void> {
    const by = { host: hostname(), process: process.pid, work: this.own.path, at: new Date().toISOString() };
    const bytes = Buffer.from(`${JSON.stringify({ ...line, by })}\n`);
    const { status } = await this.store.putIfAbsent(keyOf(number), { bytes });
    this.#lines = number + 1;
    if (status === 'written') return;
    const winner = await readWhole(this.store, keyOf(number));
    throw this.#inUse(winner.toString());
  }

  async put(files: readonly WrittenFile[], signal: AbortSignal): Promise<readonly WrittenFile[]> {
    const missing: WrittenFile[] = [];
    for (const facts of files) {
      const { file, bytes: size, sha256 } = facts;
      const path = join(this.work, temporaryName(file));
      if (existsSync(path)) {
        const { status } = await this.store.putIfAbsent(file, { file: path, size, sha256 }, signal);
        if (status === 'taken' && !(await this.#isRewritten(file, signal)))
          throw new MillraceError('folder_in_use', `${this.url}/${file} is there, with other content`);
      } else if (
        (await this.store.head(file, signal))?.bytes !== size &&
        !(await this.#isRewritten(file, signal))
      )
        missing.push(facts);
    }
    await this.#clearReplaced(files, signal);
    return missing;
  }

  /**
   * True when an object with other bytes is what an erasure left of this step's file: an object that was there before is older
   * than the step's line. Both times are by the store's clock.
   */
  async #isRewritten(file: string, signal: AbortSignal): Promise<boolean> {
    const present = await this.store.head(file, signal);
    const line = await this.store.head(keyOf(this.#lines - 1), signal);
    return present !== null && line !== null && present.modifiedAt >= line.modifiedAt;
  }

  /** Removes files of a step that another machine has finished and replaced while this one was suspended. @throws MillraceError folder_in_use then */
  async #clearReplaced(files: readonly WrittenFile[], signal: AbortSignal): Promise<void> {
    if ((await this.store.head(keyOf(this.#lines), signal)) === null) return;
    const later = (await Array.fromAsync(linesInStore(this.store))).slice(this.#lines);
    const removed = new Set(later.flatMap((line) => exportStep.parse(JSON.parse(line)).removes));
    const own = files.map(({ file }) => file).filter((file) => removed.has(file));
    await removePermanently(this.store, own, signal);
    throw this.#inUse(later[0] ?? '{}');
  }

  #inUse(line: string): MillraceError {
    return new MillraceError('folder_in_use', `${this.url}: ${whoWrote(line)} is exporting to it too`);
  }

  remove(files: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    return removePermanently(this.store, files, signal);
  }
}

/** Lines of the log of an export in a store. */
export async function* linesInStore(store: ObjectStore): AsyncGenerator<string> {
  let number = 0;
  for await (const { key } of store.list(LOG)) {
    if (key !== keyOf(number)) throw new Error(`${store.url}/${key} is not line ${number} of an export`);
    number += 1;
    yield String(await readWhole(store, key));
  }
}

function keyOf(number: number): string {
  return `${LOG}${String(number).padStart(6, '0')}.json`;
}

/** Who wrote a line, for messages. */
function whoWrote(line: string): string {
  const value: unknown = JSON.parse(line);
  const by = isRecord(value) && isRecord(value['by']) ? value['by'] : {};
  return `process ${String(by['process'])} on ${String(by['host'])} (work folder ${String(by['work'])}, ${String(by['at'])})`;
}
