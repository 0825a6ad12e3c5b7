import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileLines, wholeEvent } from '../archive/file-lines.ts';
import { finishedNames } from '../archive/read.ts';
import { messageOf } from '../core/errors.ts';
import { LineReader, type Reading } from './line-reader.ts';
import { StepMaker, type FileUnit, type Step } from './unit.ts';

/** Reads files of events: archive records, lines of events, and events that have a file each. */
export class FileReader {
  readonly #lines: LineReader;

  constructor(reading: Reading) {
    this.#lines = new LineReader(reading);
  }

  /**
   * Streams a file, about a quarter of a megabyte a step. What cannot be read is a problem of a step; the rest of the file
   * is still read where that is possible.
   * @param from the last line that needs no reading; a file that has changed since it was listed is read from its start
   */
  async *read(unit: FileUnit, from: number, signal?: AbortSignal): AsyncGenerator<Step> {
    const where = presentPath(unit);
    let last = 0;
    try {
      const start = from > 0 && (await isUnchanged(unit, where)) ? from : 0;
      const steps =
        unit.form === 'event' ? this.#readEvent(unit, where) : this.#readLines(unit, where, start);
      for await (const step of steps) {
        signal?.throwIfAborted();
        last = step.at;
        yield step;
      }
    } catch (error) {
      if (signal?.aborted === true) throw error;
      const step = new StepMaker(last);
      step.problem(where, messageOf(error));
      yield step.made();
    }
  }

  async *#readLines(unit: FileUnit, where: string, from: number): AsyncGenerator<Step> {
    const isPart = unit.form === 'part';
    const time = Math.trunc(unit.modified);
    let bytes = 0;
    let past = false;
    let reached = from;
    const count = (chunk: Buffer): number => (bytes += chunk.length);
    // Of a part, every line is looked at: whether it was there when the list was made.
    for await (const lines of fileLines(where, count, isPart ? undefined : this.#lines.passesOver)) {
      const last = lines.at(-1)?.number ?? 0;
      if (last <= from) {
        // Its bytes were counted before.
        bytes = 0;
        continue;
      }
      const step = new StepMaker(reached);
      for (const line of lines) {
        if (line.number <= from) continue;
        // What came after the list was made is no part of the replay; nor is a line that is still being written.
        past = isPart && (line.end > unit.bytes || !line.ended);
        if (past) break;
        step.passTo(line.number - 1);
        step.take(line.number, `${where}:${line.number}`, this.#lines.take(line, time));
      }
      reached = last;
      const made = step.made(bytes);
      // Before the pause of a yield: the file is read ahead in it.
      bytes = 0;
      yield made;
      if (past) return;
    }
  }

  async *#readEvent(unit: FileUnit, where: string): AsyncGenerator<Step> {
    const step = new StepMaker(0);
    const taken = this.#lines.passesOverBlob(where)
      ? 'passed'
      : this.#lines.takeBlob(where, await wholeEvent(where));
    step.take(1, where, taken);
    yield step.made(unit.bytes);
  }
}

/** A part may have been finished since it was listed. */
function presentPath({ root, file, form }: FileUnit): string {
  const finished =
    form === 'part' ? finishedNames(file).find((name) => existsSync(join(root, name))) : undefined;
  return join(root, finished ?? file);
}

/** An erasure, or a receiver that finished the file, may have moved its lines. */
async function isUnchanged({ bytes, modified }: FileUnit, where: string): Promise<boolean> {
  const now = await stat(where);
  return now.size === bytes && now.mtimeMs === modified;
}
