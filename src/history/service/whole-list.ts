import { ServiceError, type ServiceErrorCode } from './errors.ts';

/** Where a page begins, as lists with numbered pages and those with offsets say it. */
export interface PagePlace {
  /** From 1. */
  readonly page: number;
  /** Items of a page: as many as the list is read by, or 1. */
  readonly size: number;
  /** Items before it. */
  readonly offset: number;
}

/** What one page of a list says. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** What tells each item from others. */
  readonly keys: readonly string[];
  /** Items of the whole list, where the service says it. */
  readonly total: unknown;
  /** Items of a full page, where the service says it. */
  readonly full: unknown;
  /** The member that says that more follow, as `has_more`; null when none does. */
  readonly more: string | null;
}

/** What no page before this one had; what a page has twice it has twice. */
export interface NewItems<T, P> {
  readonly items: readonly T[];
  readonly page: P;
}

/** Most times that a list is read. */
const PASSES = 3;
/** A list that has more than these never ends. */
const MOST_ITEMS = 5_000_000;

/** Nothing came between the pages; something did, before what was read; what was there may have been passed over. */
type Moved = 'not' | 'later' | 'lost';

/**
 * Reads a list to its end, page by page. What comes or goes meanwhile moves others to pages that were read before, so the
 * item in front of each page is asked for once the page is there: where it is another than was read there, the whole list
 * is read again, and gives what it has not given yet.
 */
export class WholeList<T, P extends ListPage<T> = ListPage<T>> {
  readonly #size: number;
  readonly #read: (place: PagePlace) => Promise<P>;
  readonly #most: number;
  readonly #given = new Set<string>();
  #problem: string | null = null;

  /** @param size items of a page, as they are asked for */
  constructor(size: number, read: (place: PagePlace) => Promise<P>, most = MOST_ITEMS) {
    this.#size = size;
    this.#read = read;
    this.#most = most;
  }

  /** After the end: why the list may not be whole, or null. */
  get problem(): string | null {
    return this.#problem;
  }

  async *pages(): AsyncGenerator<NewItems<T, P>> {
    for (let pass = 1; pass <= PASSES; pass += 1) {
      const before = this.#problem;
      const pages = new PageCount();
      const moved = yield* this.#pass(pages);
      if (this.#given.size > this.#most) {
        this.#problem = `the service has listed ${this.#given.size} items, and does not come to an end`;
        return;
      }
      this.#problem = moved === 'lost' ? 'the list moved while it was read' : pages.problem;
      const isStill = moved === 'not' && pages.hasFirst;
      // What has moved to the front was not seen on either page; another look finds it there.
      if (this.#problem === null && (isStill || pass > 1)) return;
      // A service that says another number each time is not asked for ever.
      if (moved === 'not' && this.#problem !== null && this.#problem === before) return;
    }
  }

  async *#pass(pages: PageCount): AsyncGenerator<NewItems<T, P>, Moved> {
    const listed = new Set<string>();
    let moved: Moved = 'not';
    let first: string | undefined;
    let last: string | undefined;
    const look = async (): Promise<void> => {
      const key = await this.#keyAt(pages.seen - 1);
      if (key === null) pages.isChecked = false;
      else if (key === undefined || !listed.has(key)) moved = 'lost';
      else if (key !== last && moved === 'not') moved = 'later';
    };
    let page = 1;
    for (let step: PageStep = 'more'; step === 'more'; page += 1) {
      const place = { page, size: this.#size, offset: pages.seen };
      const read = await pages.next(() => this.#read(place));
      if (last !== undefined) await look();
      if (read === null) break;
      const { items, keys } = read;
      const isPaged = pages.isChecked && moved === 'not';
      step = pages.add(read, (key) => listed.has(key), isPaged);
      if (step === 'repeated') break;
      first ??= keys[0];
      last = keys.at(-1) ?? last;
      const isNew = keys.map((key) => !this.#given.has(key));
      for (const key of keys) {
        listed.add(key);
        this.#given.add(key);
      }
      if (isNew.includes(true)) yield { items: items.filter((_, index) => isNew[index]), page: read };
      if (this.#given.size > this.#most) return moved;
    }
    // Something may have come in front while the last page was looked at, and hidden there that something had gone.
    if (page > 2) await look();
    // Or something has moved to the front, and as much has gone from there.
    if (page > 2 && moved === 'not' && pages.isChecked && (await this.#keyAt(0)) !== first) moved = 'later';
    return moved;
  }

  /** The item at a position; undefined when there is none, and null when the service does not give one item by itself. */
  async #keyAt(offset: number): Promise<string | null | undefined> {
    try {
      const { keys, full } = await this.#read({ page: offset + 1, size: 1, offset });
      if (keys.length > 1 || (typeof full === 'number' && full !== 1)) return null;
      return keys.length === 0 && full !== 1 ? null : keys[0];
    } catch (error) {
      if (error instanceof ServiceError && isRefusal(error)) return null;
      throw error;
    }
  }
}

/** What is to be done after a page: `repeated` is the end as well, and its items are known. */
type PageStep = 'more' | 'last' | 'repeated';

const REFUSALS: ReadonlySet<ServiceErrorCode> = new Set([
  'bad_request',
  'not_found',
  'unprocessable',
  'rejected',
]);

/** Whether the service says no more than that it does not have such a page. */
function isRefusal({ code }: ServiceError): boolean {
  return REFUSALS.has(code);
}

/** Finds the end of a list that is read page by page, and holds what came against what the service says there is. */
class PageCount {
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

  /**
   * A page is the last by what the service says, or because none follows: how many were asked for tells nothing.
   * @param isKnown whether a page before had the item
   * @param isPaged whether the service gives the items of its list by their position
   */
  add(page: Omit<ListPage<unknown>, 'items'>, isKnown: (key: string) => boolean, isPaged: boolean): PageStep {
    const { keys, total, full, more } = page;
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
