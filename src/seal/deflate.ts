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
  #shared: DeflateRaw | null = null;
  #pieces: Buffer[] = [];

  constructor(dictionary: Buffer) {
    this.#dictionary = dictionary;
  }

  /** @throws Error when there is no memory for it */
  compress(text: Buffer): Buffer {
    if (text.length > LARGE) return deflateRawSync(text, { level: LEVEL, dictionary: this.#dictionary });
    const shared = this.#shared ?? this.#newShared();
    // One that has failed compresses nothing any more: it is there again only once all went well.
    this.#shared = null;
    this.#pieces = [];
    shared.write(text);
    shared.reset();
    const [first, ...more] = this.#pieces;
    if (first === undefined) throw new Error('nothing was compressed');
    this.#shared = shared;
    return more.length === 0 ? first : Buffer.concat([first, ...more]);
  }

  #newShared(): DeflateRaw {
    const options = { ...SMALL, dictionary: this.#dictionary };
    return new DeflateRaw(options).on('data', (piece) => this.#pieces.push(piece));
  }
}
