import { ByteWriter } from '../../lib/byte-writer.ts';
import { OPEN_BRACE } from '../../lib/json-text.ts';
import { columnsOf } from '../definition.ts';
import { memberIfJson } from '../documents.ts';
import type { TableFields } from '../learned/field-sums.ts';
import { readColumn } from '../shape/column-types.ts';
import type { RowReject } from '../shape/reject.ts';
import { linesOf, type RowLines } from '../shape/row-lines.ts';
import { Shaper, type ShaperOptions } from '../shape/shape.ts';
import { TABLES, type TableEntry, type Tables } from '../tables.ts';
import { DamagedText } from './input.ts';
import { type ElementOptions, ElementScanner } from './elements.ts';
import { QuickItems, TEXT } from './quick/quick-items.ts';

/** Redshift's COPY refuses rows above 4 MB. */
export const LONGEST_ELEMENT = 4 * 1024 * 1024;
/** Rows are handed on in pieces of about this size. */
const PIECE = 256 * 1024;

/** Bytes of text from which on `QuickItems` is worth its memory. */
const LEAST_QUICK = 128 * 1024;

/** A row that is not written, and where its document stands. */
export interface LocatedReject extends RowReject {
  /** Offset of the document's first byte in the text, decompressed; with `--at`, in the text that was picked out. */
  readonly byte_offset: number;
  readonly byte_length: number;
}

/** `tables` are of the same documents, such as `meals` and `meal_items`. The callbacks are those of `ElementScanner`. */
export interface ShapeTextOptions
  extends
    Pick<ShaperOptions, 'tables' | 'given' | 'onUnknown'>,
    Pick<ElementOptions, 'groups' | 'lines' | 'onList' | 'onMember' | 'onDocument'> {
  /** All tables that there are. Default: the built-in ones. */
  readonly known?: Tables;
  /** Names the text, such as a hash of it; called when a row has an unknown key. Default: `_loaded_at`. */
  readonly source?: () => string;
  /** Bytes above which an element is rejected. */
  readonly longest?: number;
  /** Name of the list, when it is not that of the table. */
  readonly list?: string | undefined;
  /** Further names of lists, beside that of the table. */
  readonly lists?: readonly string[];
  /** Takes whole lines of NDJSON. The buffer is valid until the promise resolves. */
  write(table: string, rows: Buffer): Promise<void>;
  onReject(reject: LocatedReject): void;
  onProgress?(progress: ShapeProgress): void;
  /** Called at the end with what the rows had, by table. */
  onMet?(fields: readonly TableFields[]): void;
  readonly signal?: AbortSignal;
}

export interface ShapeProgress {
  /** Bytes of text, decompressed. */
  readonly bytes: number;
  readonly elements: number;
  /** Rows of each wanted table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly rejects: number;
}

/**
 * Shapes a bulk JSON text into rows, in memory that does not grow with it: a response body, a file, NDJSON. `ElementScanner`
 * says which shapes it takes. Faults of the text go to `onReject`. When the promise settles, no `write` is running.
 * @throws TypeError for tables of different documents; errors of `chunks` and `write`; the signal's reason
 */
export async function shapeText(
  chunks: AsyncIterable<Buffer>,
  options: ShapeTextOptions,
): Promise<ShapeProgress> {
  const known = options.known ?? TABLES;
  const entry = entryOf(options.tables, known);
  const { name, nested = [], framed } = entry.document;
  // An array of that name can hold rows inside a document.
  const isInner = nested.some(({ at, each }) => at === 'data' && each === 'array');
  let element = { offset: 0, length: 0 };
  const progress = { bytes: 0, elements: 0, rejects: 0 };
  const reject = (fault: RowReject, offset: number, length: number): void => {
    progress.rejects += 1;
    options.onReject({ ...fault, byte_offset: offset, byte_length: length });
  };
  const lines = linesOf(options.tables.map((table) => known.entry(table).definition));
  const shaper = new Shaper(entry, {
    ...options,
    targets: lines,
    source: options.source ?? (() => options.given?.['_loaded_at'] ?? ''),
    onReject: (fault) => reject(fault, element.offset, element.length),
  });
  const longest = options.longest ?? LONGEST_ELEMENT;
  let quick: QuickItems | null = null;
  const padded = new PaddedChunk();
  let text: Buffer = Buffer.alloc(0);
  const scanner = new ElementScanner({
    ...options,
    containers:
      options.list === undefined
        ? [name, ...(isInner ? [] : ['data']), ...(options.lists ?? [])]
        : [options.list],
    longest,
    take: (at, offset) => {
      // An item may be a frame around its document.
      if (framed !== undefined) return 0;
      const end = quick?.shape(at, longest) ?? 0;
      if (quick !== null && end > 0) {
        progress.elements += quick.elements;
        quick.takeRows((ready) => {
          lines.get(ready.table)?.append(ready.rows, ready.count);
          shaper.adopt(ready);
        });
      }
      if (end !== 0) return Math.max(end, 0);
      shaper.at(offset);
      const next = shaper.shapeItem(text, at, longest);
      if (next > 0) progress.elements += 1;
      return next;
    },
    onElement: (found, start) => {
      const bytes = framed === undefined ? found : insideFrame(found, framed);
      const offset = start + bytes.byteOffset - found.byteOffset;
      progress.elements += 1;
      element = { offset, length: bytes.length };
      shaper.at(offset);
      if (!shaper.shape(bytes))
        reject({ table: name, code: 'wrong_type', reason: 'it has no rows inside' }, offset, bytes.length);
    },
    onFault: (code, reason, offset, length) => reject({ table: name, code, reason }, offset, length),
  });
  const outputs = [...lines].map(([table, rows]) => new Output(table, rows, options));
  const report = (): ShapeProgress => ({ ...progress, rows: shaper.counts() });
  const readAll = async (): Promise<void> => {
    try {
      for await (const chunk of chunks) {
        options.signal?.throwIfAborted();
        for (let at = 0; at < chunk.length; at += TEXT) {
          const piece = chunk.subarray(at, at + TEXT);
          if (progress.bytes + at + piece.length >= LEAST_QUICK)
            quick ??= QuickItems.of(shaper.plan, options.tables, options.given);
          text = quick?.fill(piece) ?? padded.fill(piece);
          scanner.push(piece);
          for (const output of outputs) await output.flush(PIECE);
        }
        progress.bytes += chunk.length;
        options.onProgress?.(report());
      }
      scanner.end();
    } catch (error) {
      if (!(error instanceof DamagedText)) throw error;
      scanner.end(error);
    }
  };
  try {
    await readAll();
    for (const output of outputs) await output.end();
  } finally {
    for (const output of outputs) await output.written();
  }
  options.onMet?.(shaper.met());
  return report();
}

/**
 * Checks values that are given for columns of tables.
 * @throws TypeError that names the column, when no table has it or its type does not take the value
 */
export function checkGiven(
  known: Tables,
  tables: readonly string[],
  given: Readonly<Record<string, string>>,
): void {
  const columns = tables.flatMap((name) => columnsOf(known.entry(name).definition));
  for (const [name, value] of Object.entries(given)) {
    const column = columns.find((one) => one.name === name);
    if (column === undefined) throw new TypeError(`${tables.join(', ')} have no column ${name}`);
    const text = Buffer.from(JSON.stringify(value));
    if (!['text', 'timestamp', 'date'].includes(column.type) || readColumn(column.type, text, 0, 1) === 0)
      throw new TypeError(`${name} is of type ${column.type}, but ${text.toString()} is not`);
  }
}

/** The object under this member of an object without an id; otherwise the object itself. */
function insideFrame(object: Buffer, member: string): Buffer {
  const inner = memberIfJson(object, 'id') === null ? memberIfJson(object, member) : null;
  return inner?.[0] === OPEN_BRACE ? inner : object;
}

function entryOf(tables: readonly string[], known: Tables): TableEntry {
  const entries = tables.map((table) => known.entry(table));
  const [first] = entries;
  if (first === undefined || entries.some(({ document }) => document !== first.document))
    throw new TypeError(`${tables.join(', ')}: not tables of the same documents`);
  return first;
}

/** Writes the rows of one table: one buffer is filled while the other is written. */
class Output {
  readonly #table: string;
  readonly #lines: RowLines;
  readonly #write: ShapeTextOptions['write'];
  #spare = new ByteWriter();
  #writing: Promise<void> = Promise.resolve();

  constructor(table: string, lines: RowLines, { write }: Pick<ShapeTextOptions, 'write'>) {
    this.#table = table;
    this.#lines = lines;
    this.#write = write;
  }

  /** Begins to write the rows when there are at least so many bytes of them, once the last write has ended. */
  async flush(least: number): Promise<void> {
    if (this.#lines.bytes < least) return;
    await this.#writing;
    const lines = this.#lines.swap(this.#spare);
    this.#spare = lines;
    this.#writing = this.#write(this.#table, lines.view());
    // The next `await` throws it; until then it is not unhandled.
    this.#writing.catch(() => undefined);
  }

  /** Resolves when nothing is being written, also after an error. */
  async written(): Promise<void> {
    await this.#writing.catch(() => undefined);
  }

  async end(): Promise<void> {
    await this.flush(1);
    await this.#writing;
  }
}

/** More zeros than any reader looks ahead. */
const ZEROS = 64;

/**
 * A copy of a chunk with zeros after it, at which the reader of an item that is cut stops. Reading once past the end of a buffer
 * makes V8 run the same code slower from then on, by a third of the whole work.
 */
class PaddedChunk {
  #bytes: Buffer = Buffer.alloc(ZEROS);

  fill(chunk: Buffer): Buffer {
    const { length } = chunk;
    if (this.#bytes.length < length + ZEROS) this.#bytes = Buffer.allocUnsafeSlow(length + ZEROS);
    this.#bytes.set(chunk);
    this.#bytes.fill(0, length, length + ZEROS);
    return this.#bytes;
  }
}
