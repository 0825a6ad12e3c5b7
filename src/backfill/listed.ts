import { hash } from 'node:crypto';
import { ElementScanner } from '../ndjson/elements.ts';

/** What came of a list that may change while it is read, page after page. */
export class Listed {
  readonly #known = new Set<string>();
  #first: number | null | undefined;

  /**
   * @param texts items as they were written: two numbers that no double tells apart are two
   * @param total items of the whole list, where the service says it
   * @returns which of them are none that came before
   */
  add(texts: readonly string[], total: unknown): readonly boolean[] {
    this.#first ??= typeof total === 'number' && total > texts.length ? total : null;
    return texts.map((text) => {
      const known = this.#known.size;
      return this.#known.add(hash('sha256', text, 'base64')).size > known;
    });
  }

  /** After the end: why the list may not be whole, or null. */
  get problem(): string | null {
    if (this.#known.size >= (this.#first ?? 0)) return null;
    return `the service said that there were ${this.#first}, and listed ${this.#known.size} different ones`;
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
