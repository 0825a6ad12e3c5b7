import { finishRecord, partsAt } from './format.ts';

/** The records of one commit, gathered without a copy. */
export class Frame {
  readonly #salt: number;
  readonly pieces: Buffer[] = [];
  /** Where the last piece ends in the buffer it is of. */
  #end = -1;
  #source: Buffer | null = null;
  #nextSeq: number;
  count = 0;
  size = 0;
  bodyBytes = 0;
  /** When the youngest event was received, milliseconds since the epoch. */
  youngest = 0;

  constructor(lastSeq: number, salt: number) {
    this.#nextSeq = lastSeq + 1;
    this.#salt = salt;
  }

  get nextSeq(): number {
    return this.#nextSeq;
  }

  /** Takes the record that begins at `at`, and fills in its place. @returns its seq */
  add(bytes: Buffer, at: number, id: { readonly key: string; readonly digest: string }): number {
    const seq = this.#nextSeq;
    this.#nextSeq += 1;
    finishRecord(bytes, at, { seq, ...id }, this.#salt);
    const { size, bodyBytes, receivedAt } = partsAt(bytes, at);
    const last = this.pieces.length - 1;
    // Records that stand beside each other are written as one piece.
    if (bytes === this.#source && at === this.#end) {
      const piece = this.pieces[last] as Buffer;
      const from = at - piece.length;
      this.pieces[last] = bytes.subarray(from, at + size);
    } else this.pieces.push(bytes.subarray(at, at + size));
    this.#source = bytes;
    this.#end = at + size;
    this.count += 1;
    this.size += size;
    this.bodyBytes += bodyBytes;
    this.youngest = Math.max(this.youngest, receivedAt);
    return seq;
  }
}
