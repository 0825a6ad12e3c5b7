import { exportsOf, growTo, type WithMemory } from './web-assembly.ts';
import { WASM } from './quick-scan-wasm.ts';

/** What `quick-scan.as` exports. */
interface Quick extends WithMemory {
  scan(from: number, to: number, names: number, spans: number, levels: number, maxDepth: number): number;
  readonly isCanonical: { readonly value: number };
  readonly others: { readonly value: number };
}

/** Limits of the scan, which hardly any text reaches: bytes, levels, names, bytes of names. */
const LONGEST = 1024 * 1024;
const MOST_LEVELS = 1024;
const MOST_NAMES = 64;
const NAMES_SIZE = 16 * 1024;
/** Bytes behind the text for zeros, at which reading stops. */
const ZEROS = 64;
/** Addresses in the memory; address 0 means none. */
const LEVELS_AT = 1024;
const SPANS_AT = LEVELS_AT + MOST_LEVELS;
const NAMES_AT = SPANS_AT + MOST_NAMES * 8;
const TEXT_AT = NAMES_AT + NAMES_SIZE;

interface Engine {
  readonly quick: Quick;
  readonly memory: Buffer;
  readonly spans: Int32Array;
  /** Names that are in the memory now. */
  names: Buffer | null;
}

/** Shared by all scans: an instance reserves much more address space than it uses. Undefined until the first use. */
let shared: Engine | null | undefined;

/** Finds members of usual JSON objects in WebAssembly; `quick-scan.as` says what is usual. */
export class QuickScan {
  readonly #engine: Engine;
  readonly #names: Buffer;
  readonly #maxDepth: number;

  /** @returns null when the engine cannot run it, and for too many names */
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

  /** True when the JSON of the last text was canonical. */
  get isCanonical(): boolean {
    return this.#engine.quick.isCanonical.value !== 0;
  }

  /** True when the last text had a member that is not searched, or one twice. */
  get hadOthers(): boolean {
    return this.#engine.quick.others.value > 0;
  }

  /**
   * @param spans set for an object: start and end of each member's value; start -1 for a missing one
   * @returns true for a JSON object; false for text that `Scanner` has to judge
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

/** Each name as JSON behind its length; a length of 0 at the end. */
function encoded(names: readonly string[]): Buffer {
  const texts = names.map((name) => Buffer.from(JSON.stringify(name)));
  return Buffer.concat([...texts.flatMap((text) => [lengthOf(text), text]), Buffer.alloc(4)]);
}

function lengthOf({ length }: Buffer): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  return bytes;
}
