import { hash } from 'node:crypto';

/** What is to be done after a page: `repeated` is the end as well, and its items are known. */
export type PageStep = 'more' | 'last' | 'repeated';

/** Finds the end of a list that is read page by page, and holds what came against what the service says there is. */
export class PageCount {
  /** Items that came. */
  seen = 0;
  /** After the end: why the list may not be whole, or null. */
  problem: string | null = null;
  readonly #pages = new Set<string>();

  /**
   * @param total items of the whole list, where the service says it
   * @param full items of a full page: where no total is said, a smaller page is the last
   */
  add(items: readonly unknown[], total: unknown, full: number): PageStep {
    const said = typeof total === 'number' ? total : null;
    if (items.length === 0) {
      if (said !== null && this.seen < said)
        this.problem = `the service says that there are ${said}, and listed ${this.seen}`;
      return 'last';
    }
    const page = hash('sha256', JSON.stringify(items));
    if (this.#pages.has(page)) {
      this.problem = `the service listed the same page twice; ${this.seen} came before`;
      return 'repeated';
    }
    this.#pages.add(page);
    this.seen += items.length;
    return (said === null ? items.length < full : this.seen === said) ? 'last' : 'more';
  }
}
