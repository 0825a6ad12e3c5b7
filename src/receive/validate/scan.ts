import {
  CLOSE_BRACE,
  COMMA,
  JsonFault,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipKey,
  skipScalar,
  skipString,
  skipWhite,
  unexpected,
} from '../../lib/json-text.ts';
import { QuickScan } from '../../lib/quick-scan.ts';

const SPACE = 0x20;

/** The result of a scan; `not_object` is JSON of another kind. */
export type Verdict = 'object' | 'not_object' | 'not_json' | 'too_deep';

/**
 * Finds a few members of a JSON object, and checks that the rest is JSON: what JSON.parse accepts, nested no deeper than
 * `maxDepth`. It makes no objects of the rest, which takes less than half the time of parsing a kilobyte, and no garbage.
 * Usual bodies are scanned in WebAssembly, in less than half of that time, with the same results.
 */
export class Scanner {
  readonly #names: readonly string[];
  readonly #keys: readonly Buffer[];
  readonly #maxDepth: number;
  /** By depth, from 1, the closing bracket of that level. */
  readonly #ends: Uint8Array;
  /** Start and end of each member's value; start is -1 until it is found. */
  readonly #spans: Int32Array;
  readonly #quick: QuickScan | null;
  #json: Buffer = Buffer.alloc(0);
  /** Index of the outermost member that is read; -1 for one that is not searched. */
  #member = -1;

  /**
   * @param names keys of the members that are searched
   * @param quick false scans all texts here, also those that `QuickScan` can scan
   */
  constructor(names: readonly string[], maxDepth: number, quick = true) {
    this.#names = names;
    this.#keys = names.map((name) => Buffer.from(name));
    this.#maxDepth = maxDepth;
    this.#ends = new Uint8Array(maxDepth + 1);
    this.#spans = new Int32Array(2 * names.length);
    this.#quick = quick ? QuickScan.of(names, maxDepth) : null;
  }

  /** The value of a member, as from JSON.parse: the last of several; undefined when there is none. */
  value(name: string): unknown {
    const index = this.#names.indexOf(name);
    const from = this.#spans[2 * index] ?? -1;
    if (from < 0) return undefined;
    const text = this.#json.toString('utf8', from, this.#spans[2 * index + 1]);
    return text.startsWith('"') && !text.includes('\\') ? text.slice(1, -1) : (JSON.parse(text) as unknown);
  }

  /** @param json UTF-8; kept until the next scan */
  scan(json: Buffer): Verdict {
    this.#json = json;
    if (this.#quick?.scan(json, this.#spans) === true) return 'object';
    this.#spans.fill(-1);
    this.#member = -1;
    try {
      const begin = skipWhite(json, 0);
      const end = this.#skip(begin);
      if (end < json.length) throw unexpected(json, end);
      return json[begin] === OPEN_BRACE ? 'object' : 'not_object';
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      return error.kind === 'depth' ? 'too_deep' : 'not_json';
    }
  }

  /**
   * Does not recurse: `maxDepth` can be larger than the stack. White space is tested here, and never after the end: after
   * one such read V8 checks the bounds at each byte, which takes a fifth of the time.
   * @returns the offset after the value and white space
   */
  #skip(begin: number): number {
    const json = this.#json;
    const ends = this.#ends;
    let depth = 0;
    let from = 0;
    let at = begin;
    for (;;) {
      if (depth === 1) from = at;
      const byte = json[at] as number;
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (depth === this.#maxDepth) throw new JsonFault('depth', at, 'nested too deeply');
        depth += 1;
        // In ASCII the closing bracket of a kind is the second after the opening one.
        ends[depth] = byte + 2;
        at += 1;
        if ((json[at] as number) <= SPACE) at = skipWhite(json, at);
        if (json[at] !== byte + 2) {
          if (byte === OPEN_BRACE) at = this.#skipToValue(at, depth);
          continue;
        }
      } else {
        at = byte === QUOTE ? Math.abs(skipString(json, at)) : skipScalar(json, at);
        if (depth === 1) this.#note(from, at);
        if ((json[at] as number) <= SPACE) at = skipWhite(json, at);
      }
      while (depth > 0 && json[at] === ends[depth]) {
        depth -= 1;
        at += 1;
        if (depth === 1) this.#note(from, at);
        if (at === json.length) break;
        if ((json[at] as number) <= SPACE) at = skipWhite(json, at);
      }
      if (depth === 0) return at;
      if (json[at] !== COMMA) throw unexpected(json, at);
      at += 1;
      if ((json[at] as number) <= SPACE) at = skipWhite(json, at);
      if (ends[depth] === CLOSE_BRACE) at = this.#skipToValue(at, depth);
    }
  }

  #skipToValue(at: number, depth: number): number {
    const end = skipKey(this.#json, at);
    if (depth === 1) this.#member = this.#find(this.#json, at, end);
    return skipColon(this.#json, Math.abs(end));
  }

  #note(from: number, to: number): void {
    if (this.#member < 0) return;
    this.#spans[2 * this.#member] = from;
    this.#spans[2 * this.#member + 1] = to;
  }

  /** Index of a key in `names`, or -1. @param end after its closing quote, negative when it has escapes */
  #find(json: Buffer, at: number, end: number): number {
    if (end < 0) return this.#names.indexOf(JSON.parse(json.toString('utf8', at, -end)) as string);
    const length = end - at - 2;
    return this.#keys.findIndex((key) => key.length === length && isAt(json, at + 1, key));
  }
}

function isAt(json: Buffer, from: number, key: Buffer): boolean {
  for (let at = 0; at < key.length; at += 1) if (json[from + at] !== key[at]) return false;
  return true;
}
