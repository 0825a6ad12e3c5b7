import { fileLines, wholeEvent } from '../archive/file-lines.ts';
import { nameOf, type ArchivePlace } from '../archive/place.ts';
import type { Places } from '../archive/places.ts';
import { presentName } from '../archive/read.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { isMissing } from '../lib/durable.ts';
import { DocumentCutter } from './cut-documents.ts';
import { LineReader, type LineReaderOptions } from './line-reader.ts';
import { StepMaker, type FileUnit, type Step } from './unit.ts';

export interface FileReaderOptions extends LineReaderOptions {
  readonly places: Places;
  /** Called for a file that has changed since a part of it was read: it is read again from its first line. */
  readonly onChanged?: (where: string) => void;
}

/** Reads files of archive records, of one event a line, and of one event each. */
export class FileReader {
  readonly #places: Places;
  readonly #onChanged: FileReaderOptions['onChanged'];
  readonly #lines: LineReader;

  constructor({ places, onChanged, ...lines }: FileReaderOptions) {
    this.#places = places;
    this.#onChanged = onChanged;
    this.#lines = new LineReader(lines);
  }

  /** Names a file that is read soon, so that its store can fetch it. */
  expect({ root, file }: FileUnit): void {
    this.#places.at(root).expect([file]);
  }

  /**
   * Streams a file in steps of about 256 KiB. A line that cannot be read is a problem of its step; the rest is read.
   * @param from the last line that was read before; a file that has changed since is read from its start
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
        // The receiver has just finished it.
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
    // Each line of a part is checked: it may have been written after the listing.
    const passesOver = isPart ? undefined : this.#lines.passesOver;
    const cutter = new DocumentCutter();
    const isForeign = !isPart;
    // Documents beyond the first of their line.
    let extra = 0;
    let lastLine = 0;
    for await (const lines of fileLines(place, file, { onBytes: count, passesOver, isForeign })) {
      const step = new StepMaker(reached);
      for (const line of lines) {
        // A line written after the listing, or not complete, is not part of the replay.
        past = isPart && (line.end > unit.bytes || !line.ended);
        if (past) break;
        const documents = this.#lines.documentsIn(line, cutter);
        const first = line.number + extra;
        extra += Math.max(0, documents.length - 1);
        lastLine = line.number;
        if (lastLine + extra <= from) continue;
        step.skipTo(Math.max(reached, first - 1));
        for (const [index, document] of documents.entries()) {
          if (first + index <= from) continue;
          const here = `${where}:${line.number}${documents.length > 1 ? `#${index + 1}` : ''}`;
          step.add(first + index, here, this.#lines.select(document, time));
        }
        if (documents.length === 0) step.reach(first);
        reached = lastLine + extra;
      }
      const made = step.made(reached > from ? bytes : 0);
      // Reset before the yield, during which the file is read ahead.
      bytes = 0;
      if (made.at > from) yield made;
      if (past) return;
    }
    const cutOff = cutter.end();
    if (cutOff === null || reached + 1 <= from) return;
    const step = new StepMaker(reached);
    const reason = 'the file ends in the middle of a document or an array';
    step.add(reached + 1, `${where}:${lastLine}`, { ok: false, reason });
    yield step.made();
  }

  async *#readEvent(unit: FileUnit, { place, file, where }: Located): AsyncGenerator<Step> {
    const step = new StepMaker(0);
    const result = this.#lines.passesOverBlob(where)
      ? 'other'
      : this.#lines.selectBlob(where, await wholeEvent(place, file, true));
    step.add(1, where, result);
    yield step.made(unit.bytes);
  }
}

/** The current file of a unit. */
interface Located {
  readonly place: ArchivePlace;
  readonly file: string;
  /** For messages. */
  readonly where: string;
}

/** False after an erasure, or when the receiver has finished the file: its lines may have moved. */
async function isUnchanged(
  place: ArchivePlace,
  { bytes, version }: FileUnit,
  file: string,
): Promise<boolean> {
  const now = await place.stat(file);
  // A file that a compaction has replaced keeps its bytes.
  if (now === null) return (await place.sliceOf(file))?.bytes === bytes;
  return now.version === version;
}
