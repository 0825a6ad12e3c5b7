import { getOrMake } from './get-or-make.ts';

/** Bytes of the smallest and the largest buffer of the pool. */
const SMALLEST = 4096;
const LARGEST = 4 * 1024 * 1024;
/** Bytes of all free buffers. */
const KEPT = 32 * 1024 * 1024;

/**
 * Buffers that are used again: a new buffer for each request would make the garbage collector run more often. Sizes are powers of
 * two, so that a free buffer serves any similar request. Larger buffers are not kept.
 */
export class BufferPool {
  readonly #free = new Map<number, Buffer[]>();
  #bytes = 0;

  /** A buffer of at least so many bytes, with arbitrary content. */
  take(bytes: number): Buffer {
    if (bytes > LARGEST) return Buffer.allocUnsafeSlow(bytes);
    let size = SMALLEST;
    while (size < bytes) size *= 2;
    const buffer = this.#free.get(size)?.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size);
    this.#bytes -= size;
    return buffer;
  }

  /** Gives back a buffer that is not read any more. A buffer of another size is dropped. */
  give(buffer: Buffer): void {
    const size = buffer.length;
    const isOurs = size >= SMALLEST && size <= LARGEST && (size & (size - 1)) === 0;
    if (!isOurs || this.#bytes + size > KEPT) return;
    this.#bytes += size;
    getOrMake(this.#free, size, () => []).push(buffer);
  }
}
