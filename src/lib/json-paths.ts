/**
 * A step of a path into JSON text. A path is a JSON Pointer (RFC 6901) with wildcards; after each `/` comes
 * - a name: the member with exactly that name, or the element of an array at that index (`0`, `17`);
 * - `*`: each member and each element;
 * - `**`: any number of levels, also none.
 * In a name `~0` is a tilde, `~1` a slash, `~2` a star. Unlike in RFC 6901 a name is not empty: with a slash too many a path would
 * name nothing, and redact nothing. `*` matches an empty name.
 */
export type Step = { readonly name: string } | '*' | '**';

/** @throws Error that says what is wrong, and what to write instead */
export function parsePath(text: string): readonly Step[] {
  if (text === '') throw new Error('is all of the document: name what is in it, such as "/data/name"');
  if (!text.startsWith('/')) {
    const names = text.replace(/^\$?\.?/, '').replaceAll(/\[(\d+|\*)?\]/g, (_, inside = '*') => `.${inside}`);
    throw new Error(`must begin with a slash, such as "/${names.split('.').join('/')}"`);
  }
  const steps = text.slice(1).split('/');
  if (steps.includes('')) throw new Error(adviceOnEmpty(steps));
  return steps.map(parseStep);
}

function adviceOnEmpty(steps: readonly string[]): string {
  const meant = `/${steps.filter((step) => step !== '').join('/')}`;
  const each = `/${steps.map((step) => (step === '' ? '*' : step)).join('/')}`;
  const other = meant === '/' ? '' : `"${meant}", or `;
  return `has an empty name, which it cannot have: write ${other}"${each}" for each member there, one with an empty name too`;
}

function parseStep(text: string): Step {
  if (text === '*' || text === '**') return text;
  if (text.includes('*'))
    throw new Error(
      `a star stands alone between slashes, and "${text}" is no name; write ~2 for a star in a name`,
    );
  const wrong = /~(?![012])/.exec(text);
  if (wrong !== null) throw new Error(`"${text}": after ~ stands 0 (a tilde), 1 (a slash) or 2 (a star)`);
  return { name: text.replaceAll('~2', '*').replaceAll('~1', '/').replaceAll('~0', '~') };
}

/** Paths, and the mark of the values that they name; marks are powers of two. */
export interface Marked {
  readonly mark: number;
  readonly paths: readonly (readonly Step[])[];
}

/** State of a walk through a document along many paths at once. */
export interface PathState {
  /** Marks of the paths that name this value. */
  readonly marks: number;
  /** Marks of the paths that may name something inside it. */
  readonly inside: number;
  /** Names of members that the paths have here, as text and as UTF-8. */
  readonly names: readonly string[];
  readonly keys: readonly Buffer[];
  /** True when one of the names is an index. */
  readonly hasIndexes: boolean;
  /** The next state. @param index of a name; -1 for any other */
  readonly next: (index: number) => PathState;
}

/** Most states in memory; beyond that they are made again. */
const REMEMBERED = 4096;

/** Many paths as one automaton. A state is made when a document first leads to it. */
export class Paths {
  readonly #steps: { readonly step: Step | null; readonly mark: number }[] = [];
  readonly #start: number[] = [];
  #states = new Map<string, PathState>();

  constructor(lists: readonly Marked[]) {
    for (const { mark, paths } of lists)
      for (const path of paths) {
        this.#start.push(this.#steps.length);
        for (const step of path) this.#steps.push({ step, mark });
        this.#steps.push({ step: null, mark });
      }
  }

  /** The state at the beginning of a document. */
  get root(): PathState {
    if (this.#states.size > REMEMBERED) this.#states = new Map();
    return this.#stateOf(this.#start);
  }

  /** @param at positions in the paths, behind matched steps */
  #stateOf(at: readonly number[]): PathState {
    const reached = new Set<number>();
    for (const from of at)
      for (let i = from; ; i += 1) {
        reached.add(i);
        // `**` also matches no level.
        if (this.#steps[i]?.step !== '**') break;
      }
    const positions = [...reached].toSorted((a, b) => a - b);
    const id = positions.join();
    let state = this.#states.get(id);
    if (state === undefined) this.#states.set(id, (state = this.#make(positions)));
    return state;
  }

  #make(positions: readonly number[]): PathState {
    let [marks, inside] = [0, 0];
    const names = new Set<string>();
    for (const position of positions) {
      const { step, mark } = this.#steps[position] ?? { step: null, mark: 0 };
      if (step === null) marks |= mark;
      else inside |= mark;
      if (typeof step === 'object' && step !== null) names.add(step.name);
    }
    const list = [...names];
    const known: (PathState | undefined)[] = [];
    return {
      marks,
      inside,
      names: list,
      keys: list.map((name) => Buffer.from(name)),
      hasIndexes: list.some((name) => INDEX.test(name)),
      next: (index) => (known[index + 1] ??= this.#stateOf(this.#after(positions, list[index]))),
    };
  }

  /** @param name undefined for a name that no path has here */
  #after(positions: readonly number[], name: string | undefined): number[] {
    return positions.flatMap((position) => {
      const step = this.#steps[position]?.step ?? null;
      if (step === null) return [];
      if (step === '**') return [position];
      return step === '*' || step.name === name ? [position + 1] : [];
    });
  }
}

const INDEX = /^(0|[1-9]\d*)$/;
