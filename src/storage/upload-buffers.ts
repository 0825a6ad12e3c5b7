/** Bytes below which a new buffer costs nothing to speak of. */
const SMALL = 1024 * 1024;
/** Bytes of all that are kept. */
const KEPT = 32 * 1024 * 1024;
/** Milliseconds after which nothing is kept any more. */
const IDLE = 10_000;

/**
 * Buffers for uploads, used again: each new one of this size makes the garbage collector go through everything there is.
 *
 * Only one that no request can still be sending from may be given back: an attempt that has timed out may be.
 */
class UploadBuffers {
  #free: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** So many bytes with anything in them. @param most bytes of the largest that is asked for */
  take(bytes: number, most: number): Buffer {
    if (bytes < SMALL) return Buffer.allocUnsafeSlow(bytes);
    const at = this.#free.findIndex(({ length }) => length >= bytes);
    const [whole = Buffer.allocUnsafeSlow(Math.max(bytes, most))] = at === -1 ? [] : this.#free.splice(at, 1);
    return whole.subarray(0, bytes);
  }

  /** @param buffer as it was taken */
  give(buffer: Buffer): void {
    const whole = Buffer.from(buffer.buffer);
    const kept = this.#free.reduce((sum, { length }) => sum + length, 0);
    if (buffer.length < SMALL || kept + whole.length > KEPT) return;
    this.#free.push(whole);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.#free = []), IDLE).unref();
  }
}

/** Of all stores of this process. */
export const uploadBuffers = new UploadBuffers();
