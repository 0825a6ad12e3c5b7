import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHUNK = 2 ** 20;

/**
 * A temporary file that is appended to and read. It has no name from its beginning, so that it is gone with the process,
 * however that ends, and nobody else can open it.
 */
export class SpillFile {
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafeSlow(CHUNK);
  #held = 0;
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
    return this.#written + this.#held;
  }

  /** @throws the system's error, as when the disk is full */
  append(bytes: Buffer, from: number, to: number): void {
    const length = to - from;
    if (this.#held + length > CHUNK) this.flush();
    if (length > CHUNK) this.#write(bytes.subarray(from, to));
    else {
      bytes.copy(this.#buffer, this.#held, from, to);
      this.#held += length;
    }
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

  #write(bytes: Buffer): void {
    for (let done = 0; done < bytes.length;) {
      const n = writeSync(this.#fd, bytes, done, bytes.length - done, this.#written);
      done += n;
      this.#written += n;
    }
  }
}
