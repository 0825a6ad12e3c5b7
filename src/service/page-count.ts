import { hash } from 'node:crypto';
import { ServiceError, type ServiceErrorCode } from './errors.ts';

/** What is to be done after a page: `repeated` is the end as well, and its items are known. */
export type PageStep = 'more' | 'last' | 'repeated';

const REFUSALS: ReadonlySet<ServiceErrorCode> = new Set([
  'bad_request',
  'not_found',
  'unprocessable',
  'rejected',
]);

/** Whether the service says no more than that it does not have such a page. */
export function isRefusal({ code }: ServiceError): boolean {
  return REFUSALS.has(code);
}

/** Finds the end of a list that is read page by page, and holds what came against what the service says there is. */
export class PageCount {
  /** Items that came. */
  seen = 0;
  /** Whether it is known of each page that it follows the one before: then what has gone meanwhile hides nothing. */
  isChecked = true;
  #different = 0;
  #problem: string | null = null;
  readonly #pages = new Set<string>();
  #last = '';
  #said: number | null = null;
  #first: number | null = null;
  #least: number | null = null;

  /** After the end: why the list may not be whole, or null. */
  get problem(): string | null {
    const wanted = (this.isChecked ? this.#least : this.#first) ?? 0;
    if (this.#problem !== null || this.#different >= wanted) return this.#problem;
    const counts = `the service says that there are ${wanted}, and listed ${this.#different} different ones`;
    const hasFallen = (this.#least ?? 0) < wanted;
    return hasFallen ? `${counts}: some went meanwhile, and others may have been passed over` : counts;
  }

  /** After the end: whether as many came as the service said first. */
  get hasFirst(): boolean {
    return this.#different >= (this.#first ?? 0);
  }

  /** Asks for a page. @returns null where an error says no more than that there is none behind the last */
  async next<T>(page: () => Promise<T>): Promise<T | null> {
    try {
      return await page();
    } catch (error) {
      if (this.#hasAll && error instanceof ServiceError && isRefusal(error)) return null;
      throw error;
    }
  }

  /** All that is said to be there has come. One page more is asked for behind a full one: the total may be of that page. */
  get #hasAll(): boolean {
    return this.#said !== null && this.seen >= this.#said;
  }

  /**
   * @param keys of the items
   * @param total items of the whole list, where the service says it
   * @param full items of a full page: a smaller one is the last, unless more is said to be there
   * @param isKnown whether a page before had the item
   */
  add(keys: readonly string[], total: unknown, full: number, isKnown: (key: string) => boolean): PageStep {
    this.#said = typeof total === 'number' ? total : null;
    // A number that is not above the page's own may be of that page.
    if (this.#said !== null && this.#said > keys.length) {
      this.#first ??= this.#said;
      this.#least = Math.min(this.#least ?? this.#said, this.#said);
    }
    if (keys.length === 0) {
      if (this.#said !== null && !this.#hasAll)
        this.#problem = `the service says that there are ${this.#said}, and listed ${this.seen}`;
      return 'last';
    }
    const page = hash('sha256', JSON.stringify(keys));
    if (this.#pages.has(page)) {
      // Some services answer a page behind the end with the last one.
      const isBehindEnd = page === this.#last && (this.#hasAll || this.#said === null);
      if (!isBehindEnd || (this.#pages.size === 1 && !this.#hasAll))
        this.#problem = `the service listed the same page twice; ${this.seen} came before`;
      return 'repeated';
    }
    this.#pages.add(page);
    this.#last = page;
    this.seen += keys.length;
    this.#different += keys.filter((key) => !isKnown(key)).length;
    const isLast = keys.length < full && (this.#said === null || this.seen === this.#said);
    return isLast ? 'last' : 'more';
  }
}
