/** Buffers kept for the next time. */
const KEPT = 16;
/** Bytes of the largest that is kept. */
const LARGEST = 2 * 1024 * 1024;
/** Sizes are multiples of this, so that the next request is likely to fit. */
const STEP = 64 * 1024;

/**
 * Buffers for requests, used again and again: a new one for each would be a new reason for the garbage collector to go
 * through everything there is.
 */
export class BufferPool {
  readonly #free: Buffer[] = [];

  /** A buffer of at least so many bytes, with anything in it. */
  take(bytes: number): Buffer {
    const at = this.#free.findIndex(({ length }) => length >= bytes);
    return this.#free.splice(at, at < 0 ? 0 : 1)[0] ?? Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP) * STEP);
  }

  /** Gives one back that nothing reads any more. */
  give(buffer: Buffer): void {
    if (this.#free.length < KEPT && buffer.length <= LARGEST) this.#free.push(buffer);
  }
}
