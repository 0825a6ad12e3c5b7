import { fileLines, wholeEvent } from '../archive/file-lines.ts';
import { nameOf, type ArchivePlace } from '../archive/place.ts';
import type { Places } from '../archive/places.ts';
import { presentName } from '../archive/read.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { isMissing } from '../lib/durable.ts';
import { LineReader, type Reading } from './line-reader.ts';
import { StepMaker, type FileUnit, type Step } from './unit.ts';

export interface ReadingFiles {
  readonly places: Places;
  /** Told of a file of which a part was read before, and which has changed since: it is read again from its first line. */
  readonly onChanged?: (where: string) => void;
}

/** Reads files of events: archive records, lines of events, and events that have a file each. */
export class FileReader {
  readonly #places: Places;
  readonly #onChanged: ReadingFiles['onChanged'];
  readonly #lines: LineReader;

  constructor({ places, onChanged, ...reading }: Reading & ReadingFiles) {
    this.#places = places;
    this.#onChanged = onChanged;
    this.#lines = new LineReader(reading);
  }

  /** Says which file is read next but a few. */
  expect({ root, file }: FileUnit): void {
    this.#places.at(root).expect([file]);
  }

  /**
   * Streams a file, about a quarter of a megabyte a step. What cannot be read is a problem of a step; the rest of the file
   * is still read where that is possible.
   * @param from the last line that needs no reading; a file that has changed since it was listed is read from its start
   */
  async *read(unit: FileUnit, from: number, signal?: AbortSignal): AsyncGenerator<Step> {
    const place = this.#places.at(unit.root);
    const { form } = unit;
    const file = form === 'part' ? await presentName(place, unit.file) : unit.file;
    const where = nameOf(unit.root, file);
    let last = 0;
    try {
      const start = from > 0 && (await isUnchanged(place, unit, file)) ? from : 0;
      if (start !== from) this.#onChanged?.(where);
      const at = { place, file, where };
      const steps = unit.form === 'event' ? this.#readEvent(unit, at) : this.#readLines(unit, at, start);
      for await (const step of steps) {
        signal?.throwIfAborted();
        last = step.at;
        yield step;
      }
    } catch (error) {
      if (signal?.aborted === true || error instanceof MillraceError) throw error;
      const isPart = form === 'part' && file === unit.file && isMissing(error);
      if (isPart && (await presentName(place, file)) !== file) {
        // Finished between looking and opening.
        yield* this.read(unit, from, signal);
      } else {
        const step = new StepMaker(last);
        step.problem(where, messageOf(error));
        yield step.made();
      }
    }
  }

  async *#readLines(unit: FileUnit, { place, file, where }: Located, from: number): AsyncGenerator<Step> {
    const isPart = unit.form === 'part';
    const time = Math.trunc(unit.modified);
    let bytes = 0;
    let past = false;
    let reached = from;
    const count = (chunk: Buffer): number => (bytes += chunk.length);
    // Of a part, every line is looked at: whether it was there when the list was made.
    const passesOver = isPart ? undefined : this.#lines.passesOver;
    for await (const lines of fileLines(place, file, { onBytes: count, passesOver })) {
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

  async *#readEvent(unit: FileUnit, { place, file, where }: Located): AsyncGenerator<Step> {
    const step = new StepMaker(0);
    const taken = this.#lines.passesOverBlob(where)
      ? 'passed'
      : this.#lines.takeBlob(where, await wholeEvent(place, file));
    step.take(1, where, taken);
    yield step.made(unit.bytes);
  }
}

/** Where a unit is now. */
interface Located {
  readonly place: ArchivePlace;
  readonly file: string;
  /** For messages. */
  readonly where: string;
}

/** An erasure, or a receiver that finished the file, may have moved its lines. */
async function isUnchanged(
  place: ArchivePlace,
  { bytes, version }: FileUnit,
  file: string,
): Promise<boolean> {
  const now = await place.stat(file);
  // What a compaction has replaced still has its bytes.
  if (now === null) return (await place.sliceOf(file))?.bytes === bytes;
  return now.version === version;
}
