import { exportsOf, growTo, type WithMemory } from './web-assembly.ts';
import { WASM } from './quick-scan-wasm.ts';

/** What `quick-scan.as` exports. */
interface Quick extends WithMemory {
  scan(from: number, to: number, names: number, spans: number, levels: number, maxDepth: number): number;
  readonly isCanonical: { readonly value: number };
  readonly others: { readonly value: number };
}

/** Longer texts, deeper ones, and more or longer names are rare. */
const LONGEST = 1024 * 1024;
const MOST_LEVELS = 1024;
const MOST_NAMES = 64;
const NAMES_SIZE = 16 * 1024;
/** Room behind the text for zeros, at which reading stops. */
const ZEROS = 64;
/** Where things are in the memory, whose beginning is left free: address 0 means that there is nothing. */
const LEVELS_AT = 1024;
const SPANS_AT = LEVELS_AT + MOST_LEVELS;
const NAMES_AT = SPANS_AT + MOST_NAMES * 8;
const TEXT_AT = NAMES_AT + NAMES_SIZE;

interface Engine {
  readonly quick: Quick;
  readonly memory: Buffer;
  readonly spans: Int32Array;
  /** Whose names are in the memory. */
  names: Buffer | null;
}

/** One for all: an instance reserves much more address space than it uses. Undefined until it is needed. */
let shared: Engine | null | undefined;

/** Looks through usual JSON objects in WebAssembly; see `quick-scan.as` for what is usual. */
export class QuickScan {
  readonly #engine: Engine;
  readonly #names: Buffer;
  readonly #maxDepth: number;

  /** @returns null where the engine cannot run it, and for unusual names */
  static of(names: readonly string[], maxDepth: number): QuickScan | null {
    const bytes = encoded(names);
    if (names.length > MOST_NAMES || bytes.length > NAMES_SIZE) return null;
    if (shared === undefined) shared = newEngine();
    return shared === null ? null : new QuickScan(shared, bytes, maxDepth);
  }

  private constructor(engine: Engine, names: Buffer, maxDepth: number) {
    this.#engine = engine;
    this.#names = names;
    this.#maxDepth = Math.min(maxDepth, MOST_LEVELS);
  }

  /** Of the text scanned last, whether its JSON stands as rows write it. */
  get isCanonical(): boolean {
    return this.#engine.quick.isCanonical.value !== 0;
  }

  /** Whether it had any member that is not looked for, or one twice. */
  get hadOthers(): boolean {
    return this.#engine.quick.others.value > 0;
  }

  /**
   * @param spans filled in where it is an object: start and end of each member's value, start -1 where there is none
   * @returns true for a JSON object; false says nothing
   */
  scan(json: Buffer, spans: Int32Array): boolean {
    if (json.length > LONGEST) return false;
    const { quick, memory, spans: found } = this.#engine;
    if (this.#engine.names !== this.#names) {
      memory.set(this.#names, NAMES_AT);
      this.#engine.names = this.#names;
    }
    const end = TEXT_AT + json.copy(memory, TEXT_AT);
    for (let i = 0; i < spans.length; i += 1) found[i] = -1;
    if (quick.scan(TEXT_AT, end, NAMES_AT, SPANS_AT, LEVELS_AT, this.#maxDepth) === 0) return false;
    for (let i = 0; i < spans.length; i += 1) {
      const at = found[i] as number;
      spans[i] = at < 0 ? -1 : at - TEXT_AT;
    }
    return true;
  }
}

function newEngine(): Engine | null {
  const quick = exportsOf(WASM) as Quick | null;
  if (quick === null) return null;
  growTo(quick, TEXT_AT + LONGEST + ZEROS);
  const { buffer } = quick.memory;
  return {
    quick,
    memory: Buffer.from(buffer),
    spans: new Int32Array(buffer, SPANS_AT, MOST_NAMES * 2),
    names: null,
  };
}

/** Each name as JSON behind its length, and a length of 0. */
function encoded(names: readonly string[]): Buffer {
  const texts = names.map((name) => Buffer.from(JSON.stringify(name)));
  return Buffer.concat([...texts.flatMap((text) => [lengthOf(text), text]), Buffer.alloc(4)]);
}

function lengthOf({ length }: Buffer): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  return bytes;
}
