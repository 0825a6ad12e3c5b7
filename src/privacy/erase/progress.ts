import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErasedItem } from '../../core/erasure.ts';
import type { IdSearch } from './id-search.ts';
import { OWNER_ONLY } from '../../lib/durable.ts';
import { appendJsonLine } from '../../lib/json-lines.ts';
import { UNFINISHED, writeDurably } from '../../lib/new-file.ts';
import { erasureLines } from './erased-list.ts';

const FILE = 'progress.jsonl';

/** What the requests that have begun have changed so far: the next run continues from it. */
export class ProgressLog {
  readonly #folder: string;
  #items: ErasedItem[];

  /** @param folder the erasure folder @throws MillraceError erasure_unreadable */
  constructor(folder: string) {
    this.#folder = folder;
    this.#items = erasureLines(join(folder, FILE));
  }

  /** The last record of each item: an interrupted run records what the next one does. */
  get items(): readonly ErasedItem[] {
    const latest = new Map(
      this.#items.map((item) => [
        JSON.stringify([item.store, item.item, item.sha256_before, keysOf(item)]),
        item,
      ]),
    );
    return [...latest.values()];
  }

  async add(item: ErasedItem): Promise<void> {
    await appendJsonLine(join(this.#folder, FILE), item);
    this.#items.push(item);
  }

  /** Removes the ids of requests that are done, while others wait. */
  async redact(search: IdSearch): Promise<void> {
    const items = this.items.map((one) => ({ ...one, item: search.redact(one.item) }));
    if (items.every(({ item }, at) => item === this.items[at]?.item)) return;
    const text = items.map((one) => `${JSON.stringify(one)}\n`).join('');
    await writeDurably(this.#folder, FILE, text, OWNER_ONLY);
    this.#items = items;
  }

  /** Called once all requests are done: the receipts have it all. */
  async clear(): Promise<void> {
    for (const name of [FILE, `${FILE}${UNFINISHED}`]) await rm(join(this.#folder, name), { force: true });
    this.#items.length = 0;
  }
}

/** Distinguishes items that are not files, such as the journal: each request is an item of its own. */
function keysOf({ removed, sha256_before: before }: ErasedItem): string {
  return before === null ? Object.keys(removed).join() : '';
}
