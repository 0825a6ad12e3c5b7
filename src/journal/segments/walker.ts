import { readSync } from 'node:fs';
import {
  ALIGN,
  FRAME_HEADER,
  FRAME_MAGIC,
  RECORD_HEADER,
  decodeFrameHead,
  decodeRecord,
  frameHeadSize,
  isSound,
  type FrameHead,
  type RecordHead,
} from './format.ts';

const LEAST = 4096;
const USUAL = 256 * 1024;

/** A record at `pos` of the walker's window `bytes`; valid until the walker moves. */
export interface FoundRecord extends RecordHead {
  readonly kind: 'record';
  /** Offset in the file. */
  readonly at: number;
  readonly bytes: Buffer;
  readonly pos: number;
  /** Body bytes of all events before it. */
  readonly upto: number;
}

export interface FoundFrame extends FrameHead {
  readonly kind: 'frame';
  readonly at: number;
  readonly headSize: number;
}

/** Bytes in which no item begins: they are damaged. */
export interface Gap {
  readonly kind: 'gap';
  readonly at: number;
  readonly size: number;
}

export type Item = FoundRecord | FoundFrame | Gap;

interface WalkerOptions {
  readonly fd: number;
  readonly salt: number;
  /** Where the last item ends. */
  readonly end: number;
  readonly at: number;
  readonly upto: number;
  /** Bytes read at once. */
  readonly chunk?: number | undefined;
}

/**
 * Walks through a part of a segment, item by item, reading it in windows. After damage it continues with the next item that can be
 * read. It reads only the headers of records; `isWhole` checks their content.
 */
export class Walker {
  readonly #fd: number;
  readonly #salt: number;
  readonly #end: number;
  readonly #chunk: number;
  #buffer = Buffer.alloc(0);
  #window = Buffer.alloc(0);
  /** Offset of the window in the file. */
  #from = 0;
  #at: number;
  #upto: number;
  #last = 0;

  constructor({ fd, salt, end, at, upto, chunk = USUAL }: WalkerOptions) {
    this.#fd = fd;
    this.#salt = salt;
    this.#end = end;
    this.#at = at;
    this.#upto = upto;
    this.#chunk = chunk;
  }

  get at(): number {
    return this.#at;
  }

  /** The next item; null at the end. The window may end behind the header of a record. */
  next(): Item | null {
    return this.sound() ?? (this.#at < this.#end ? this.#gap() : null);
  }

  /** The item that begins here; null for damage and at the end. */
  sound(): FoundFrame | FoundRecord | null {
    const found = this.#at < this.#end ? this.#item() : null;
    if (found === null) return null;
    this.#at += found.kind === 'frame' ? found.headSize : found.size;
    if (found.kind === 'record') {
      this.#upto += found.bodyBytes;
      this.#last = found.size;
    } else this.#upto = found.upto;
    return found;
  }

  /** The same record with at least so many of its bytes in the window. */
  whole(record: FoundRecord, bytes = record.size): FoundRecord {
    if (record.pos + bytes <= record.bytes.length) return record;
    this.#load(record.at, bytes);
    return { ...record, bytes: this.#window, pos: record.at - this.#from };
  }

  /** True when all of a record is undamaged. */
  isWhole(record: FoundRecord): boolean {
    const { bytes, pos } = this.whole(record);
    return pos + record.size <= bytes.length && isSound(bytes, pos, record, this.#salt);
  }

  #item(): FoundFrame | FoundRecord | null {
    const at = this.#at;
    if (!this.#has(at, RECORD_HEADER)) return null;
    const pos = at - this.#from;
    const record = decodeRecord(this.#window, pos, this.#salt);
    if (record !== null && at + record.size <= this.#end)
      return { kind: 'record', ...record, at, bytes: this.#window, pos, upto: this.#upto };
    const headSize = frameHeadSize(this.#window, pos);
    if (headSize === 0 || !this.#has(at, headSize)) return null;
    const frame = decodeFrameHead(this.#window, at - this.#from, headSize, this.#salt);
    return frame === null ? null : { kind: 'frame', ...frame, at, headSize };
  }

  /** Everything up to the next item, or to the end. */
  #gap(): Gap {
    const from = this.#at;
    do {
      this.#at = Math.min(this.#at + ALIGN, this.#end);
    } while (this.#at < this.#end && this.#item() === null);
    return { kind: 'gap', at: from, size: this.#at - from };
  }

  #has(at: number, bytes: number): boolean {
    if (at + bytes > this.#end) return false;
    if (at < this.#from || at + bytes > this.#from + this.#window.length) this.#load(at, bytes);
    return at + bytes <= this.#from + this.#window.length;
  }

  #load(at: number, bytes: number): void {
    // Content that is passed over is not read.
    const usual = this.#last > this.#chunk / 4 ? LEAST : this.#chunk;
    const size = Math.min(this.#end - at, Math.max(usual, bytes));
    if (this.#buffer.length < size) this.#buffer = Buffer.allocUnsafeSlow(size);
    this.#from = at;
    this.#window = this.#buffer.subarray(0, readFully(this.#fd, this.#buffer.subarray(0, size), at));
  }
}

/** @returns bytes read; fewer than asked for at the end of the file */
export function readFully(fd: number, bytes: Buffer, at: number): number {
  let done = 0;
  while (done < bytes.length) {
    const read = readSync(fd, bytes, done, bytes.length - done, at + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}

/** The first undamaged frame at or after `at` with a number above `number`; null when there is none. */
export function nextFrame(
  fd: number,
  { at, end, salt }: Pick<WalkerOptions, 'at' | 'end' | 'salt'>,
  number: number,
): FoundFrame | null {
  const step = 4 * USUAL;
  for (let from = at; from < end; from += step) {
    const bytes = Buffer.allocUnsafe(Math.min(step + FRAME_MAGIC.length, end - from));
    const length = readFully(fd, bytes, from);
    for (
      let pos = bytes.indexOf(FRAME_MAGIC);
      pos !== -1 && pos < Math.min(length, step);
      pos = bytes.indexOf(FRAME_MAGIC, pos + 1)
    ) {
      if ((from + pos) % ALIGN !== 0 || from + pos + FRAME_HEADER > end) continue;
      const item = new Walker({ fd, salt, end, at: from + pos, upto: 0, chunk: LEAST }).sound();
      if (item?.kind === 'frame' && item.number > number) return item;
    }
  }
  return null;
}
