import { ServiceError, type ServiceErrorCode } from './errors.ts';

/** What is to be done after a page: `repeated` is the end as well, and its items are known. */
export type PageStep = 'more' | 'last' | 'repeated';

/** What one page of a list says. */
export interface CountedPage {
  /** What tells each item from others. */
  readonly keys: readonly string[];
  /** Items of the whole list, where the service says it. */
  readonly total: unknown;
  /** Items of a full page, where the service says it. */
  readonly full: unknown;
  /** The member that says that more follow, as `has_more`; null when none does. */
  readonly more: string | null;
}

/** What is known of the pages before. */
export interface PagesBefore {
  /** Whether one of them had the item. */
  readonly isKnown: (key: string) => boolean;
  /** Whether the service gives the items of its list by their position. */
  readonly isPaged: boolean;
}

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
  #pages = 0;
  #last: string | undefined;
  #more: string | null = null;
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
      const isEnd = this.#hasAll || (this.#said === null && this.#pages > 0);
      if (!isEnd || !(error instanceof ServiceError) || !isRefusal(error)) throw error;
      this.#end();
      // 404 says that there is no such page; other refusals may be of how it was asked for.
      if (this.#said === null && error.code !== 'not_found')
        this.#problem ??= `the service refuses the page behind ${this.seen} items, and does not say how many there are`;
      return null;
    }
  }

  /** All that is said to be there has come. One page more is asked for behind a full one: the total may be of that page. */
  get #hasAll(): boolean {
    return this.#said !== null && this.seen >= this.#said;
  }

  /** A page is the last by what the service says, or because none follows: how many were asked for tells nothing. */
  add({ keys, total, full, more }: CountedPage, { isKnown, isPaged }: PagesBefore): PageStep {
    this.#said = typeof total === 'number' ? total : null;
    // A number that is not above the page's own may be of that page.
    if (this.#said !== null && this.#said > keys.length) {
      this.#first ??= this.#said;
      this.#least = Math.min(this.#least ?? this.#said, this.#said);
    }
    if (keys.length === 0) {
      if (this.#said !== null && !this.#hasAll)
        this.#problem = `the service says that there are ${this.#said}, and listed ${this.seen}`;
      this.#end();
      return 'last';
    }
    if (keys.every(isKnown)) {
      // Some services answer a page behind the end with the last one.
      const isBehindEnd =
        keys.at(-1) === this.#last && (this.#hasAll || (this.#said === null && (this.#pages > 1 || isPaged)));
      if (!isBehindEnd) this.#problem = `the service listed the same page twice; ${this.seen} came before`;
      this.#end();
      return 'repeated';
    }
    this.#pages += 1;
    this.#last = keys.at(-1);
    this.#more = more;
    this.seen += keys.length;
    this.#different += keys.filter((key) => !isKnown(key)).length;
    const isShort = typeof full === 'number' && keys.length < full;
    const isLast = more === null && this.#said === this.seen && (isShort || this.#said > keys.length);
    return isLast ? 'last' : 'more';
  }

  #end(): void {
    if (this.#more !== null)
      this.#problem ??= `the service says ${this.#more} behind ${this.seen} items, and lists no more`;
  }
}
