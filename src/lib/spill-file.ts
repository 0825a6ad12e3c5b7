import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Written at a time: 1 MiB. */
const CHUNK_WORDS = 2 ** 18;

/**
 * A temporary file of words of 32 bits that is appended to and read. It loses its name at once, so that it is gone with
 * the process, however that ends, and nobody else can open it.
 */
export class SpillFile {
  readonly #fd: number;
  readonly #buffer = new Uint32Array(CHUNK_WORDS);
  /** Words. */
  #held = 0;
  /** Bytes. */
  #written = 0;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /** @throws the system's error */
  static create(): SpillFile {
    const path = join(tmpdir(), `millrace-${randomBytes(8).toString('hex')}.tmp`);
    const fd = openSync(path, 'wx+', 0o600);
    rmSync(path);
    return new SpillFile(fd);
  }

  /** What was appended, in bytes. */
  get length(): number {
    return this.#written + this.#held * 4;
  }

  /** @throws the system's error, as when the disk is full */
  append(words: Uint32Array, from: number, to: number): void {
    if (this.#held + to - from > CHUNK_WORDS) this.flush();
    if (to - from > CHUNK_WORDS) {
      this.#write(words.subarray(from, to));
      return;
    }
    // A dozen words: quicker than the call that copies them.
    for (let n = from; n < to; n += 1, this.#held += 1) this.#buffer[this.#held] = words[n] ?? 0;
  }

  /** Writes what it holds; only that can be read. */
  flush(): void {
    this.#write(this.#buffer.subarray(0, this.#held));
    this.#held = 0;
  }

  /** Fills `target` from a position on. @returns how many bytes, fewer only at the end */
  read(target: Uint8Array, position: number): number {
    let done = 0;
    while (done < target.length) {
      const n = readSync(this.#fd, target, done, target.length - done, position + done);
      if (n === 0) break;
      done += n;
    }
    return done;
  }

  close(): void {
    closeSync(this.#fd);
  }

  #write(words: Uint32Array): void {
    for (let done = 0; done < words.byteLength;) {
      const bytes = new Uint8Array(words.buffer, words.byteOffset + done, words.byteLength - done);
      const n = writeSync(this.#fd, bytes, 0, bytes.length, this.#written);
      done += n;
      this.#written += n;
    }
  }
}
