/** A growing buffer. Hot code calls `room`, writes to `buffer` directly, and sets `length`. */
export class ByteWriter {
  buffer: Buffer;
  length = 0;

  constructor(size = 4096) {
    this.buffer = Buffer.allocUnsafeSlow(size);
  }

  /** Makes room for so many more bytes. */
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

  /** The written bytes; the next write may change this view. */
  view(): Buffer {
    return this.buffer.subarray(0, this.length);
  }
}

/** The same bytes as a Buffer; a Buffer that comes from another thread is none any more. */
export function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

/** The pieces in a buffer of their own, which can be transferred to another thread. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
