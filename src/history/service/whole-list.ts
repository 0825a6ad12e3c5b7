import { ServiceError } from './errors.ts';
import { isRefusal, PageCount, type CountedPage, type PageStep } from './page-count.ts';

/** Where a page begins, as lists with numbered pages and those with offsets say it. */
export interface PagePlace {
  /** From 1. */
  readonly page: number;
  /** Items of a page: as many as the list is read by, or 1. */
  readonly size: number;
  /** Items before it. */
  readonly offset: number;
}

export interface ListPage<T> extends CountedPage {
  readonly items: readonly T[];
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
      step = pages.add(read, { isKnown: (key) => listed.has(key), isPaged });
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
