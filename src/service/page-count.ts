import { hash } from 'node:crypto';
import { ServiceError, type ServiceErrorCode } from './errors.ts';

/** What is to be done after a page: `repeated` is the end as well, and its items are known. */
export type PageStep = 'more' | 'last' | 'repeated';

const BEHIND_END: ReadonlySet<ServiceErrorCode> = new Set([
  'bad_request',
  'not_found',
  'unprocessable',
  'rejected',
]);

/** Finds the end of a list that is read page by page, and holds what came against what the service says there is. */
export class PageCount {
  /** Items that came. */
  seen = 0;
  #problem: string | null = null;
  readonly #pages = new Set<string>();
  #last = '';
  #said: number | null = null;
  #most = 0;

  /** The most that the service has said there are; 0 where what it says cannot be all. */
  get most(): number {
    return this.#most;
  }

  /** After the end: why the list may not be whole, or null. */
  get problem(): string | null {
    if (this.#problem !== null || this.seen >= this.#most) return this.#problem;
    return `the service said that there were ${this.#most}, and listed ${this.seen}: some went meanwhile, and others may have been passed over`;
  }

  /** Asks for a page. @returns null where an error says no more than that there is none behind the last */
  async next<T>(page: () => Promise<T>): Promise<T | null> {
    try {
      return await page();
    } catch (error) {
      if (this.#hasAll && error instanceof ServiceError && BEHIND_END.has(error.code)) return null;
      throw error;
    }
  }

  /** All that is said to be there has come. One page more is asked for behind a full one: the total may be of that page. */
  get #hasAll(): boolean {
    return this.#said !== null && this.seen >= this.#said;
  }

  /**
   * @param total items of the whole list, where the service says it
   * @param full items of a full page: a smaller one is the last, unless more is said to be there
   */
  add(items: readonly unknown[], total: unknown, full: number): PageStep {
    this.#said = typeof total === 'number' ? total : null;
    // A number that is not above the page's own may be of that page.
    if (this.#said !== null && this.#said > items.length) this.#most = Math.max(this.#most, this.#said);
    if (items.length === 0) {
      if (this.#said !== null && !this.#hasAll)
        this.#problem = `the service says that there are ${this.#said}, and listed ${this.seen}`;
      return 'last';
    }
    const page = hash('sha256', JSON.stringify(items));
    if (this.#pages.has(page)) {
      // Some services answer a page behind the end with the last one.
      const isBehindEnd = page === this.#last && (this.#hasAll || this.#said === null);
      if (!isBehindEnd || (this.#pages.size === 1 && !this.#hasAll))
        this.#problem = `the service listed the same page twice; ${this.seen} came before`;
      return 'repeated';
    }
    this.#pages.add(page);
    this.#last = page;
    this.seen += items.length;
    const isLast = items.length < full && (this.#said === null || this.seen === this.#said);
    return isLast ? 'last' : 'more';
  }
}
