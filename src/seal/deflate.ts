import { constants, deflateRawSync } from 'node:zlib';
import { DeflateRaw } from 'minizlib';

/** Longer texts take longer than setting up a compressor does. */
const LARGE = 8192;
const LEVEL = 4;
/** A window as small as the texts: a larger one takes longer to clear. */
const SMALL = { level: LEVEL, windowBits: 14, memLevel: 5, chunkSize: 32_768, flush: constants.Z_FINISH };

/**
 * Raw deflate with a dictionary. Short texts share one compressor: node sets one up for each call, which takes longer than
 * to compress a record of 1.6 KB.
 */
export class Deflate {
  readonly #dictionary: Buffer;
  readonly #shared: DeflateRaw;
  #pieces: Buffer[] = [];

  constructor(dictionary: Buffer) {
    this.#dictionary = dictionary;
    const options = { ...SMALL, dictionary };
    this.#shared = new DeflateRaw(options).on('data', (piece) => this.#pieces.push(piece));
  }

  /** @throws Error when there is no memory for it */
  compress(text: Buffer): Buffer {
    if (text.length > LARGE) return deflateRawSync(text, { level: LEVEL, dictionary: this.#dictionary });
    this.#pieces = [];
    this.#shared.write(text);
    this.#shared.reset();
    const [first, ...more] = this.#pieces;
    if (first === undefined) throw new Error('nothing was compressed');
    return more.length === 0 ? first : Buffer.concat([first, ...more]);
  }
}
