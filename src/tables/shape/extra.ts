import { ByteWriter } from '../../lib/byte-writer.ts';
import { mayRepeat, mergeRepeated } from '../../lib/json-repeated.ts';
import { copyCompact, copyText } from '../../lib/json-compact.ts';
import { CLOSE_BRACE, COLON, COMMA, OPEN_BRACE } from '../../lib/json-text.ts';
import type { Fields } from './row-plan.ts';

const EMPTY = new Uint8Array(0);

/**
 * Writes a row's `extra`: an object of the members that no column took, inside the objects they were found in. An object
 * is opened when the first such member appears in it. No object of it names a member twice: loaders refuse that.
 */
export class ExtraWriter {
  readonly #out = new ByteWriter();
  readonly #path: Fields[] = [];
  #opened = 0;
  #finished: Uint8Array | null = null;

  reset(): void {
    this.#out.length = 0;
    this.#path.length = 0;
    this.#opened = 0;
    this.#finished = null;
  }

  enter(object: Fields): void {
    this.#path.push(object);
  }

  leave(): void {
    if (this.#opened === this.#path.length) {
      this.#byte(CLOSE_BRACE);
      this.#opened -= 1;
    }
    this.#path.pop();
  }

  /** A member as it stands in the document, made compact. `keyTo` is negative when the key has escapes. */
  member(bytes: Uint8Array, keyFrom: number, keyTo: number, from: number, to: number): void {
    this.#openAll();
    const out = this.#out;
    out.room((Math.abs(keyTo) - keyFrom + to - from) * 2 + 2);
    const { buffer } = out;
    const at = copyText(bytes, keyFrom, keyTo, buffer, out.length);
    buffer[at] = COLON;
    out.length = copyCompact(bytes, from, to, buffer, at + 1);
  }

  /** A value from elsewhere, at a path of its own. */
  named(path: string, bytes: Uint8Array, from: number, to: number): void {
    const names = path.split('.');
    this.#openAll();
    this.#out.append(Buffer.from(`${names.map((name) => JSON.stringify(name)).join(':{')}:`));
    this.#out.room((to - from) * 2);
    this.#out.length = copyCompact(bytes, from, to, this.#out.buffer, this.#out.length);
    for (const _ of names.slice(1)) this.#byte(CLOSE_BRACE);
  }

  /** The whole object, for as long as nothing is written; no bytes when it has no members. */
  finish(): Uint8Array {
    if (this.#out.length === 0) return EMPTY;
    if (this.#finished !== null) return this.#finished;
    this.#byte(CLOSE_BRACE);
    const out = this.#out;
    const view = out.view();
    this.#finished = mayRepeat(out.buffer, 0, out.length)
      ? Buffer.from(mergeRepeated(view.toString()))
      : view;
    return this.#finished;
  }

  /** Writes what must stand before the next member: the objects around it, or a comma. */
  #openAll(): void {
    if (this.#out.length === 0) this.#byte(OPEN_BRACE);
    else if (this.#out.buffer[this.#out.length - 1] !== OPEN_BRACE) this.#byte(COMMA);
    while (this.#opened < this.#path.length) {
      this.#out.append((this.#path[this.#opened] as Fields).open);
      this.#opened += 1;
    }
  }

  #byte(byte: number): void {
    this.#out.room(1);
    this.#out.buffer[this.#out.length] = byte;
    this.#out.length += 1;
  }
}
