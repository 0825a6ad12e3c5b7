import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  DEEPEST,
  JsonFault,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipColon,
  skipKey,
  skipValue,
  skipWhite,
  unexpected,
} from './json-text.ts';
import { copy } from './json-compact.ts';
import { Paths, type PathState, type Step } from './json-paths.ts';

/** What is cut out of JSON text. For a value that several lists name, `remove` counts before `mask`. */
export interface CutLists {
  /** Only the values that these name are kept, with the objects and arrays around them; null keeps all. */
  readonly only: readonly (readonly Step[])[] | null;
  /** Values that are replaced by the mask. */
  readonly mask: readonly (readonly Step[])[];
  /** Members that are removed with their names. */
  readonly remove: readonly (readonly Step[])[];
}

const ONLY = 1;
const MASK = 2;
const REMOVE = 4;

const NULL = Buffer.from('null');
const NOTHING = Buffer.alloc(0);

/**
 * Cuts the values that paths name out of the bytes of an object; all other bytes stay unchanged. A member is removed with its comma
 * and the white space around it. An element of an array becomes `null`, so that the others keep their indexes. Members of the same
 * name are treated alike. Applied to its own result it changes nothing.
 */
export class JsonCutter {
  readonly #paths: Paths;
  readonly #keepsAll: boolean;
  readonly #mask: Buffer;
  #bytes: Buffer = NULL;
  /** Start and end of each cut, ascending, and its replacement. */
  readonly #from: number[] = [];
  readonly #to: number[] = [];
  readonly #put: Buffer[] = [];
  /** True when something is left of the last value. */
  #isLeft = true;

  /** @param maskText JSON that replaces a masked value */
  constructor({ only, mask, remove }: CutLists, maskText = 'null') {
    this.#paths = new Paths([
      { mark: ONLY, paths: only ?? [] },
      { mark: MASK, paths: mask },
      { mark: REMOVE, paths: remove },
    ]);
    this.#keepsAll = only === null;
    this.#mask = Buffer.from(maskText);
  }

  /** True when the value of this member of the outermost object is masked or removed. */
  hides(name: string): boolean {
    const { names, next } = this.#paths.root;
    return (next(names.indexOf(name)).marks & (MASK | REMOVE)) !== 0;
  }

  /**
   * @param bytes one JSON object, with white space around it
   * @returns the same buffer when nothing is cut
   * @throws JsonFault for other text, and for an object nested deeper than 200 levels
   */
  apply(bytes: Buffer): Buffer {
    this.#bytes = bytes;
    this.#from.length = this.#to.length = this.#put.length = 0;
    const at = skipWhite(bytes, 0);
    if (bytes[at] !== OPEN_BRACE) throw unexpected(bytes, at);
    const end = skipWhite(bytes, this.#object(at, this.#paths.root, this.#keepsAll, 1));
    if (end !== bytes.length) throw unexpected(bytes, end);
    const cut = this.#from.length === 0 ? bytes : this.#assemble();
    this.#bytes = NULL;
    return cut;
  }

  #assemble(): Buffer {
    const bytes = this.#bytes;
    let size = bytes.length;
    for (let i = 0; i < this.#from.length; i += 1)
      size += (this.#put[i] as Buffer).length - ((this.#to[i] as number) - (this.#from[i] as number));
    const out = Buffer.allocUnsafe(size);
    let [read, written] = [0, 0];
    for (let i = 0; i < this.#from.length; i += 1) {
      written = copy(bytes, read, this.#from[i] as number, out, written);
      const put = this.#put[i] as Buffer;
      written = copy(put, 0, put.length, out, written);
      read = this.#to[i] as number;
    }
    copy(bytes, read, bytes.length, out, written);
    return out.equals(bytes) ? bytes : out;
  }

  #cut(from: number, to: number, put: Buffer): void {
    this.#from.push(from);
    this.#to.push(to);
    this.#put.push(put);
  }

  /** Drops all cuts after the first `cuts`: the value around them is cut as a whole. */
  #dropAfter(cuts: number): void {
    this.#from.length = this.#to.length = this.#put.length = cuts;
  }

  /** @returns the index after the value @param outer true when a value around it is kept */
  #value(at: number, state: PathState, outer: boolean, depth: number): number {
    const { marks, inside } = state;
    const kept = outer || (marks & ONLY) !== 0;
    this.#isLeft = kept;
    if ((marks & (MASK | REMOVE)) !== 0) {
      const end = skipValue(this.#bytes, at, depth);
      this.#isLeft = kept && (marks & REMOVE) === 0;
      if (this.#isLeft) this.#cut(at, end, this.#mask);
      return end;
    }
    const c = this.#bytes[at];
    if ((inside & (kept ? MASK | REMOVE : ONLY)) !== 0) {
      if (c === OPEN_BRACE) return this.#object(at, state, kept, depth);
      if (c === OPEN_BRACKET) return this.#array(at, state, kept, depth);
    }
    return skipValue(this.#bytes, at, depth);
  }

  #object(at: number, state: PathState, kept: boolean, depth: number): number {
    const bytes = this.#bytes;
    if (depth > DEEPEST) throw new JsonFault('depth', at, `nested deeper than ${DEEPEST} levels`);
    /** Start of the member, with the white space before it. */
    let from = at + 1;
    let isAnyLeft = false;
    let i = skipWhite(bytes, from);
    if (bytes[i] === CLOSE_BRACE) {
      this.#isLeft = kept;
      return i + 1;
    }
    for (;;) {
      const cuts = this.#from.length;
      const end = skipKey(bytes, i);
      const member = state.next(indexOf(state, bytes, i, end));
      i = skipWhite(bytes, this.#value(skipColon(bytes, Math.abs(end)), member, kept, depth + 1));
      const isLast = bytes[i] === CLOSE_BRACE;
      if (!isLast && bytes[i] !== COMMA) throw unexpected(bytes, i);
      if (this.#isLeft) isAnyLeft = true;
      else {
        this.#dropAfter(cuts);
        // With one of the commas around it.
        if (isAnyLeft) this.#cut(from - 1, i, NOTHING);
        else this.#cut(from, isLast ? i : i + 1, NOTHING);
      }
      if (isLast) break;
      from = i + 1;
      i = skipWhite(bytes, from);
    }
    this.#isLeft = kept || isAnyLeft;
    return i + 1;
  }

  #array(at: number, state: PathState, kept: boolean, depth: number): number {
    const bytes = this.#bytes;
    if (depth > DEEPEST) throw new JsonFault('depth', at, `nested deeper than ${DEEPEST} levels`);
    let isAnyLeft = false;
    let i = skipWhite(bytes, at + 1);
    for (let element = 0; bytes[i] !== CLOSE_BRACKET; element += 1) {
      const cuts = this.#from.length;
      const index = state.hasIndexes ? state.names.indexOf(String(element)) : -1;
      const end = this.#value(i, state.next(index), kept, depth + 1);
      if (this.#isLeft) isAnyLeft = true;
      else {
        this.#dropAfter(cuts);
        this.#cut(i, end, NULL);
      }
      i = skipWhite(bytes, end);
      if (bytes[i] === CLOSE_BRACKET) break;
      if (bytes[i] !== COMMA) throw unexpected(bytes, i);
      i = skipWhite(bytes, i + 1);
      if (bytes[i] === CLOSE_BRACKET) throw unexpected(bytes, i);
    }
    this.#isLeft = kept || isAnyLeft;
    return i + 1;
  }
}

/** Index of a member's name among those of a state; -1 for others. @param end after its closing quote, negative with escapes */
function indexOf({ names, keys }: PathState, bytes: Buffer, at: number, end: number): number {
  if (keys.length === 0) return -1;
  if (end < 0) return names.indexOf(JSON.parse(bytes.toString('utf8', at, -end)) as string);
  const length = end - at - 2;
  for (let k = 0; k < keys.length; k += 1) {
    const key = keys[k] as Buffer;
    if (key.length !== length) continue;
    let b = 0;
    while (b < length && bytes[at + 1 + b] === key[b]) b += 1;
    if (b === length) return k;
  }
  return -1;
}
