import { hash } from 'node:crypto';
import { ElementScanner } from '../ndjson/elements.ts';

/** What came of a list that may change while it is read, page after page. */
export class Listed {
  /** Items of the pages before, as hashes. */
  readonly #known = new Set<string>();
  #count = 0;
  #first: number | null | undefined;

  /**
   * @param texts items as they were written: two numbers that no double tells apart are two
   * @param total items of the whole list, where the service says it
   * @returns which of them no page before had; what a page has twice it has twice
   */
  add(texts: readonly string[], total: unknown): readonly boolean[] {
    this.#first ??= typeof total === 'number' && total > texts.length ? total : null;
    const hashes = texts.map((text) => hash('sha256', text, 'base64'));
    const isNew = hashes.map((each) => !this.#known.has(each));
    for (const each of hashes) this.#known.add(each);
    this.#count += isNew.filter(Boolean).length;
    return isNew;
  }

  /** After the end: why the list may not be whole, or null. */
  get problem(): string | null {
    if (this.#count >= (this.#first ?? 0)) return null;
    return `the service said that there were ${this.#first}, and listed ${this.#count} different ones`;
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
