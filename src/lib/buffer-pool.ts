import { getOrMake } from './get-or-make.ts';

/** Bytes of the smallest buffer, and of the largest that is kept for the next time. */
const SMALLEST = 4096;
const LARGEST = 4 * 1024 * 1024;
/** Bytes of all that are kept. */
const KEPT = 32 * 1024 * 1024;

/**
 * Buffers for requests, used again and again: a new one for each would be a new reason for the garbage collector to go
 * through everything there is. Sizes are powers of two, so that one that is given back fits the next request; but for
 * large ones, which are not kept.
 */
export class BufferPool {
  readonly #free = new Map<number, Buffer[]>();
  #bytes = 0;

  /** A buffer of at least so many bytes, with anything in it. */
  take(bytes: number): Buffer {
    if (bytes > LARGEST) return Buffer.allocUnsafeSlow(bytes);
    let size = SMALLEST;
    while (size < bytes) size *= 2;
    const buffer = this.#free.get(size)?.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size);
    this.#bytes -= size;
    return buffer;
  }

  /** Gives one back that nothing reads any more; one from elsewhere is not kept. */
  give(buffer: Buffer): void {
    const size = buffer.length;
    const isOurs = size >= SMALLEST && size <= LARGEST && (size & (size - 1)) === 0;
    if (!isOurs || this.#bytes + size > KEPT) return;
    this.#bytes += size;
    getOrMake(this.#free, size, () => []).push(buffer);
  }
}
