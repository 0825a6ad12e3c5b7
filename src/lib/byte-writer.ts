/** Bytes gathered in one growing buffer. Hot code writes to `buffer` itself, after `room`, and sets `length`. */
export class ByteWriter {
  buffer: Buffer;
  length = 0;

  constructor(size = 4096) {
    this.buffer = Buffer.allocUnsafeSlow(size);
  }

  /** Makes sure that so many bytes more can be written. */
  room(bytes: number): void {
    const wanted = this.length + bytes;
    if (wanted <= this.buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(wanted, this.buffer.length * 2));
    this.buffer.copy(grown, 0, 0, this.length);
    this.buffer = grown;
  }

  append(bytes: Uint8Array): void {
    this.room(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** What has been written; a view that the next write may change. */
  view(): Buffer {
    return this.buffer.subarray(0, this.length);
  }
}

/** The same bytes, for what came from another thread: there it is no Buffer any more. */
export function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

/** One buffer of its own, which no other bytes share: it can be handed to another thread. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
