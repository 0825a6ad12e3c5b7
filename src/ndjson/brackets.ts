/** Levels whose kind of bracket is remembered; below them only their number is. Nothing so deep becomes a row. */
const REMEMBERED = 256;
const CASE = 0x20;
const OPEN = 0x7b;

/** The open brackets around a place in JSON text. */
export class Brackets {
  readonly #kinds = new Uint8Array(REMEMBERED);
  depth = 0;

  open(bracket: number): void {
    if (this.depth < REMEMBERED) this.#kinds[this.depth] = bracket;
    this.depth += 1;
  }

  /** False when this is not the bracket that closes the innermost open one. */
  close(bracket: number): boolean {
    if (this.depth === 0) return false;
    this.depth -= 1;
    // Each closing bracket of ASCII is its opening one plus 2.
    return this.depth >= REMEMBERED || this.#kinds[this.depth] === bracket - 2;
  }
}

/** `{` or `[`, which differ in one bit. */
export function opens(byte: number): boolean {
  return (byte | CASE) === OPEN;
}

/** `}` or `]`. */
export function closes(byte: number): boolean {
  return (byte | CASE) === OPEN + 2;
}
