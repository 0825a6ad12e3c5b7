import { hash } from 'node:crypto';
import { ElementScanner } from '../ndjson/elements.ts';

/** What came of a list that may change while it is read, page after page. */
export class Listed {
  readonly #key: string | undefined;
  readonly #known = new Set<string>();
  readonly #keys = new Set<unknown>();
  #last: unknown;
  #first: number | null | undefined;
  #hasMoved = false;
  /** Items at the end of the last page that the next one should begin with. */
  overlap = 0;

  /** @param key names each item; undefined where pages cannot overlap */
  constructor(key: string | undefined) {
    this.#key = key;
  }

  /**
   * @param texts the items as they were written: two numbers that no double tells apart are two
   * @param total items of the whole list, where the service says it
   * @returns how many items were asked for again, and which are none that came before
   */
  add(
    items: readonly unknown[],
    texts: readonly string[],
    total: unknown,
  ): { readonly shared: number; readonly isNew: readonly boolean[] } {
    this.#first ??= typeof total === 'number' && total > items.length ? total : null;
    const keys = items.map((item) => this.#keyOf(item));
    const shared = this.overlap > 0 && keys[0] === this.#last ? 1 : 0;
    if (this.overlap > 0 && !this.#keys.has(keys[0])) this.#hasMoved = true;
    const isNew = texts.map((text) => this.#isNew(text));
    this.overlap = this.#key !== undefined && items.length > 1 ? 1 : 0;
    if (this.#key !== undefined) for (const key of keys) this.#keys.add(key);
    this.#last = keys.at(-1);
    return { shared, isNew };
  }

  /** After the end: why the list may not be whole, or null. */
  get problem(): string | null {
    if (this.#hasMoved) return 'the list moved while it was read, and some may have been passed over';
    if (this.#known.size >= (this.#first ?? 0)) return null;
    return `the service said that there were ${this.#first}, and listed ${this.#known.size} different ones`;
  }

  #keyOf(item: unknown): unknown {
    return this.#key === undefined || typeof item !== 'object' || item === null
      ? undefined
      : Reflect.get(item, this.#key);
  }

  #isNew(written: string): boolean {
    const text = hash('sha256', written, 'base64');
    const isNew = !this.#known.has(text);
    this.#known.add(text);
    return isNew;
  }
}

/** The elements of a document's list, each as it was written. */
export function elementsOf(document: string, list: string): string[] {
  const elements: string[] = [];
  const scanner = new ElementScanner({
    containers: [list],
    longest: Infinity,
    onElement: (bytes) => elements.push(bytes.toString()),
    onFault: () => undefined,
  });
  scanner.push(Buffer.from(document));
  scanner.end();
  return elements;
}
