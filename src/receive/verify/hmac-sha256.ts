import { createHmac, hash, type KeyObject } from 'node:crypto';

/** Bytes SHA-256 takes in at once, and bytes it gives out. */
const BLOCK = 64;
const DIGEST = 32;
/** Longer content is hashed in pieces: there a copy costs more than the object that takes them. */
const LONGEST = 64 * 1024;

/**
 * HMAC-SHA256 under one key, as RFC 2104 puts it together from two hashes. Node's own makes an object for each, with a
 * finalizer that the garbage collector has to run; over a kilobyte that costs two thirds more (1.86 µs against 1.18).
 */
export class HmacSha256 {
  readonly #key: KeyObject;
  readonly #inner = Buffer.alloc(BLOCK + LONGEST);
  readonly #outer = Buffer.alloc(BLOCK + DIGEST);

  constructor(key: KeyObject) {
    this.#key = key;
    const bytes = key.export();
    const block = bytes.length > BLOCK ? hash('sha256', bytes, 'buffer') : bytes;
    for (let at = 0; at < BLOCK; at += 1) {
      this.#inner[at] = (block[at] ?? 0) ^ 0x36;
      this.#outer[at] = (block[at] ?? 0) ^ 0x5c;
    }
  }

  /** @param prefix ASCII, before the body @returns base64 */
  sign(prefix: string, body: Buffer): string {
    const length = prefix.length + body.length;
    if (length > LONGEST) return createHmac('sha256', this.#key).update(prefix).update(body).digest('base64');
    this.#inner.write(prefix, BLOCK, 'latin1');
    body.copy(this.#inner, BLOCK + prefix.length);
    const digest = hash('sha256', this.#inner.subarray(0, BLOCK + length), 'binary');
    this.#outer.write(digest, BLOCK, 'latin1');
    return hash('sha256', this.#outer, 'base64');
  }
}
