import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErasedItem, ErasureReceipt, ErasureRequest } from '../core/erasure.ts';
import { OWNER_ONLY, writeDurably } from '../lib/durable.ts';

const FOLDER = 'receipts';

/** What is put on record about one request: which files and tables, how many records, hashes; no id, and no data. */
export function receiptOf(
  request: ErasureRequest,
  done: {
    readonly hash: string;
    readonly items: readonly ErasedItem[];
    readonly stores: readonly string[];
    readonly notSearched: readonly string[];
    /** Milliseconds since the epoch. */
    readonly finishedAt: number;
  },
): ErasureReceipt {
  const items = done.items.flatMap(({ store, item, removed, sha256_before, sha256_after }) => {
    const count = removed[request.request] ?? 0;
    return count === 0 ? [] : [{ store, item, removed: count, sha256_before, sha256_after }];
  });
  const finished = new Date(done.finishedAt).toISOString();
  return {
    receipt: request.request,
    subject_hash: done.hash,
    by: request.by,
    requested_at: request.requested_at,
    due_at: request.due_at,
    begun_at: request.begun_at ?? finished,
    finished_at: finished,
    records_removed: items.reduce((sum, { removed }) => sum + removed, 0),
    stores: done.stores,
    not_searched: done.notSearched,
    items,
  };
}

/** Durable once it resolves. */
export async function writeReceipt(folder: string, receipt: ErasureReceipt): Promise<void> {
  const receipts = join(folder, FOLDER);
  await mkdir(receipts, { recursive: true, mode: 0o700 });
  const text = `${JSON.stringify(receipt, null, 2)}\n`;
  await writeDurably(receipts, `${receipt.receipt}.json`, text, OWNER_ONLY);
}
