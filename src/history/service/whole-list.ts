import { ServiceError, type ServiceErrorCode } from './errors.ts';

/** Where a page begins, for lists with numbered pages and for lists with offsets. */
export interface PagePlace {
  /** From 1. */
  readonly page: number;
  /** Items of a page. */
  readonly size: number;
  /** Items before it. */
  readonly offset: number;
}

/** One page of a list. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** A key for each item. */
  readonly keys: readonly string[];
  /** Number of items of the list, as the service says it. */
  readonly total: unknown;
  /** Number of items of a full page, as the service says it. */
  readonly full: unknown;
  /** The member that says that more items follow, such as `has_more`, or null. */
  readonly more: string | null;
}

/** Items that no earlier page had; items that are on the page twice are in it twice. */
export interface NewItems<T, P> {
  readonly items: readonly T[];
  readonly page: P;
}

/** Most times that a list is read. */
const PASSES = 3;
/** Items above which a list counts as endless. */
const MOST_ITEMS = 5_000_000;

/** How the list has changed between two pages: not, by items in front of what was read, or so that items may be missing. */
type Shift = 'none' | 'front' | 'lost';

/**
 * Reads a list to its end, page by page. Items that come or go shift others to pages that were read before. So after each page
 * the item in front of it is read: if it is not the last item of the page before, the whole list is read again for items that
 * were not given yet.
 */
export class WholeList<T, P extends ListPage<T> = ListPage<T>> {
  readonly #size: number;
  readonly #read: (place: PagePlace) => Promise<P>;
  readonly #most: number;
  readonly #given = new Set<string>();
  /** After the end: why the list may not be whole; null when it is. */
  problem: string | null = null;

  /** @param size items to ask for on a page */
  constructor(size: number, read: (place: PagePlace) => Promise<P>, most = MOST_ITEMS) {
    this.#size = size;
    this.#read = read;
    this.#most = most;
  }

  async *pages(): AsyncGenerator<NewItems<T, P>> {
    for (let pass = 1; pass <= PASSES; pass += 1) {
      const before = this.problem;
      const pages = new PageCount();
      const shift = yield* this.#pass(pages);
      if (this.#given.size > this.#most) {
        this.problem = `the service has listed ${this.#given.size} items, and does not come to an end`;
        return;
      }
      this.problem = shift === 'lost' ? 'the list moved while it was read' : pages.problem;
      const isStill = shift === 'none' && pages.hasFirst;
      // An item that moved to the front was on no page; the next pass finds it.
      if (this.problem === null && (isStill || pass > 1)) return;
      // Another pass would find the same problem.
      if (shift === 'none' && this.problem !== null && this.problem === before) return;
    }
  }

  async *#pass(pages: PageCount): AsyncGenerator<NewItems<T, P>, Shift> {
    const listed = new Set<string>();
    let shift: Shift = 'none';
    let first: string | undefined;
    let last: string | undefined;
    const look = async (): Promise<void> => {
      const key = await this.#keyAt(pages.seen - 1);
      if (key === null) pages.isChecked = false;
      else if (key === undefined || !listed.has(key)) shift = 'lost';
      else if (key !== last && shift === 'none') shift = 'front';
    };
    let page = 1;
    for (let step: PageStep = 'more'; step === 'more'; page += 1) {
      const place = { page, size: this.#size, offset: pages.seen };
      const read = await pages.next(() => this.#read(place));
      if (last !== undefined) await look();
      if (read === null) break;
      const { items, keys } = read;
      const isPaged = pages.isChecked && shift === 'none';
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
      if (this.#given.size > this.#most) return shift;
    }
    if (page <= 2) return shift;
    // An item that came in front may hide that another has gone.
    await look();
    // An item may have moved to the front, and another gone from there.
    if (shift === 'none' && pages.isChecked && (await this.#keyAt(0)) !== first) shift = 'front';
    return shift;
  }

  /** Key of the item at a position; undefined when there is none, null when the service does not give one item alone. */
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

/** What follows a page. `repeated` is also the end: the page has no new items. */
type PageStep = 'more' | 'last' | 'repeated';

const REFUSALS: ReadonlySet<ServiceErrorCode> = new Set([
  'bad_request',
  'not_found',
  'unprocessable',
  'rejected',
]);

/** Whether the service says only that it does not have such a page. */
function isRefusal({ code }: ServiceError): boolean {
  return REFUSALS.has(code);
}

/** Finds the end of a list, and compares the items with the number that the service says. */
class PageCount {
  /** Items read. */
  seen = 0;
  /** True when each page is known to follow the one before: then items that go hide no others. */
  isChecked = true;
  #different = 0;
  #problem: string | null = null;
  #pages = 0;
  #last: string | undefined;
  #more: string | null = null;
  /** Totals that the service said: on the last page, first, and the least. */
  #said: number | null = null;
  #first: number | null = null;
  #least: number | null = null;

  /** After the end: why the list may not be whole; null when it is. */
  get problem(): string | null {
    const wanted = (this.isChecked ? this.#least : this.#first) ?? 0;
    if (this.#problem !== null || this.#different >= wanted) return this.#problem;
    const counts = `the service says that there are ${wanted}, and listed ${this.#different} different ones`;
    const hasFallen = (this.#least ?? 0) < wanted;
    return hasFallen ? `${counts}: some went while it was read, and others may be missing` : counts;
  }

  /** After the end: whether there were as many items as the service said first. */
  get hasFirst(): boolean {
    return this.#different >= (this.#first ?? 0);
  }

  /** Reads a page. @returns null when an error says only that there is no page behind the last */
  async next<T>(page: () => Promise<T>): Promise<T | null> {
    try {
      return await page();
    } catch (error) {
      const isEnd = this.#hasAll || (this.#said === null && this.#pages > 0);
      if (!isEnd || !(error instanceof ServiceError) || !isRefusal(error)) throw error;
      this.#end();
      // Other refusals than 404 may have another reason.
      if (this.#said === null && error.code !== 'not_found')
        this.#problem ??= `the service refuses the page behind ${this.seen} items, and does not say how many there are`;
      return null;
    }
  }

  /** True when all items that the service says have been read. */
  get #hasAll(): boolean {
    return this.#said !== null && this.seen >= this.#said;
  }

  /**
   * Counts a page.
   * @param isKnown whether an earlier page of this pass had the item
   * @param isPaged true when the service gives items by their position
   */
  add(page: Omit<ListPage<unknown>, 'items'>, isKnown: (key: string) => boolean, isPaged: boolean): PageStep {
    const { keys, total, full, more } = page;
    this.#said = typeof total === 'number' ? total : null;
    // A total that is not above the page's items may be of this page only.
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
      // Some services answer a page behind the end with the last page.
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
