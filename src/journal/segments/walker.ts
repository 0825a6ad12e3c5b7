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

/** A record as the walker comes to it: `bytes` are its window, where it begins at `pos`, until the walker goes on. */
export interface FoundRecord extends RecordHead {
  readonly kind: 'record';
  /** In the file. */
  readonly at: number;
  readonly bytes: Buffer;
  readonly pos: number;
  /** Sum of the body bytes of all events before it. */
  readonly upto: number;
}

export interface FoundFrame extends FrameHead {
  readonly kind: 'frame';
  readonly at: number;
  readonly headSize: number;
}

/** Bytes in which no item begins: what was written there is damaged. */
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
  /** Bytes read at once, for who keeps what is found: then each window is new, and stays as it is. */
  readonly keeping?: number | undefined;
}

/**
 * Goes through a part of a segment, item by item, reading ahead in windows. Where an item cannot be read it looks for the
 * next one that can. Records are looked at by their headers alone: whether they are whole is asked of `isSound`.
 */
export class Walker {
  readonly #fd: number;
  readonly #salt: number;
  readonly #end: number;
  readonly #chunk: number;
  readonly #isKept: boolean;
  #buffer = Buffer.alloc(0);
  #window = Buffer.alloc(0);
  /** Of the window, in the file. */
  #from = 0;
  #at: number;
  #upto: number;
  #last = 0;

  constructor({ fd, salt, end, at, upto, keeping }: WalkerOptions) {
    this.#fd = fd;
    this.#salt = salt;
    this.#end = end;
    this.#at = at;
    this.#upto = upto;
    this.#chunk = keeping ?? USUAL;
    this.#isKept = keeping !== undefined;
  }

  get at(): number {
    return this.#at;
  }

  /** The next item; null at the end. Of a record only the header is sure to be in the window. */
  next(): Item | null {
    return this.sound() ?? (this.#at < this.#end ? this.#gap() : null);
  }

  /** The item that begins here; null when none does. */
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

  /** The same record, with as many bytes of it in its window as are asked for. */
  whole(record: FoundRecord, bytes = record.size): FoundRecord {
    if (record.pos + bytes <= record.bytes.length) return record;
    this.#load(record.at, bytes);
    return { ...record, bytes: this.#window, pos: record.at - this.#from };
  }

  /** Whether all of a record is what was written. */
  isWhole(record: FoundRecord): boolean {
    const { bytes, pos } = this.whole(record);
    return pos + record.size <= bytes.length && isSound(bytes, pos, record, this.#salt);
  }

  /** Whether the next record is in the window, all of it. */
  isNear(): boolean {
    const pos = this.#at - this.#from;
    if (pos + RECORD_HEADER > this.#window.length) return false;
    const head = decodeRecord(this.#window, pos, this.#salt);
    return head === null || pos + head.size <= this.#window.length;
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

  /** From here to where an item begins again, or to the end. */
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
    // What is only passed by is not read.
    const usual = this.#last > this.#chunk / 4 ? LEAST : this.#chunk;
    const size = Math.min(this.#end - at, Math.max(usual, bytes));
    if (this.#isKept || this.#buffer.length < size) this.#buffer = Buffer.allocUnsafeSlow(size);
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

/** Where a sound frame begins at or after `at`; null when there is none. */
export function nextFrame(fd: number, at: number, end: number, salt: number): FoundFrame | null {
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
      const item = new Walker({ fd, salt, end, at: from + pos, upto: 0, keeping: LEAST }).sound();
      if (item?.kind === 'frame') return item;
    }
  }
  return null;
}
