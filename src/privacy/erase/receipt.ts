import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ErasedItem, ErasureReceipt, ErasureRequest } from '../../core/erasure.ts';
import type { ReceiptFile, Receipts } from '../../core/proof.ts';
import { ENTRY_BYTES, type LogHead } from '../../core/receipt.ts';
import { checkSigned, signJson, type Signer } from '../../core/signature.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { isRecord } from '../../lib/parsed.ts';
import { makeFolder, namesIn, OWNER_ONLY } from '../../lib/durable.ts';
import { writeDurably } from '../../lib/new-file.ts';
import { ProgressLog } from './progress.ts';
import { isWaiting, Requests } from './requests.ts';

const FOLDER = 'receipts';

type UnsignedReceipt = Omit<ErasureReceipt, 'signed_by' | 'signature'>;

/** The receipt of one request: files and tables, numbers of records, hashes; no id and no data. */
export function receiptOf(
  request: ErasureRequest,
  done: {
    readonly hash: string;
    readonly items: readonly ErasedItem[];
    readonly stores: readonly string[];
    readonly notSearched: readonly string[];
    readonly notReached: readonly string[];
    /** Milliseconds since the epoch. */
    readonly finishedAt: number;
    readonly log: LogHead | null;
  },
): UnsignedReceipt {
  const items = done.items.flatMap(({ store, item, removed, sha256_before, sha256_after, entries }) => {
    const count = removed[request.request] ?? 0;
    const own = entries?.[request.request] ?? [];
    const more = own.length === 0 ? {} : { entries: own };
    return count === 0 ? [] : [{ store, item, removed: count, sha256_before, sha256_after, ...more }];
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
    ...(done.notReached.length === 0 ? {} : { not_reached: done.notReached }),
    items,
    ...(done.log === null ? {} : { log: done.log }),
  };
}

/** Signs and writes a receipt; durable once it resolves. */
export async function writeReceipt(
  folder: string,
  receipt: UnsignedReceipt,
  signer: Signer,
): Promise<ErasureReceipt> {
  const receipts = join(folder, FOLDER);
  makeFolder(receipts, 0o700);
  const written = JSON.parse(signJson('receipt', JSON.stringify(receipt), signer)) as ErasureReceipt;
  // Indented for people; signed is the text without white space.
  await writeDurably(
    receipts,
    `${receipt.receipt}.json`,
    `${JSON.stringify(written, null, 2)}\n`,
    OWNER_ONLY,
  );
  return written;
}

/** The receipts of an erasure folder. @param trusted public keys whose receipts count; empty: any */
export function receiptsIn(folder: string, trusted: ReadonlySet<string>): Receipts {
  const read = new Map<string, ReceiptFile>();
  return {
    folder: join(folder, FOLDER),
    of: (id) => getOrMake(read, id, () => readReceipt(folder, id, trusted)),
  };
}

function readReceipt(folder: string, id: string, trusted: ReadonlySet<string>): ReceiptFile {
  if (!/^[0-9a-f]{1,64}$/.test(id)) return { state: 'missing' };
  const path = join(folder, FOLDER, `${id}.json`);
  const waits = isWaiting(folder, id);
  // In this order: a receipt is written before its request is removed.
  if (!existsSync(path)) return { state: waits ? 'in_progress' : 'missing' };
  try {
    const value = JSON.parse(readFileSync(path, 'utf8')) as ErasureReceipt;
    const { state, by } = checkSigned('receipt', JSON.stringify(value));
    if (state !== 'valid' || (trusted.size > 0 && !trusted.has(by))) return { state: 'forged' };
    if (
      value.receipt !== id ||
      !Array.isArray(value.items) ||
      !(value.items as readonly unknown[]).every(isRecord)
    )
      return { state: 'forged' };
    return { state: 'signed', items: value.items, log: value.log ?? null };
  } catch {
    return { state: 'forged' };
  }
}

/** Entries of the log of receipts that an erasure has removed. */
export interface ErasedEntries {
  /** Path of its receipt. */
  readonly file: string;
  /** Head of the log at that time; null when the receipt does not say it. */
  readonly head: LogHead | null;
  readonly entries: readonly Buffer[];
}

/** By receipt. @param trusted public keys whose receipts count; empty: any */
export function* erasedEntries(folder: string, trusted: ReadonlySet<string>): Generator<ErasedEntries> {
  for (const name of namesIn(join(folder, FOLDER))) {
    if (!name.endsWith('.json')) continue;
    const found = readReceipt(folder, name.slice(0, -'.json'.length), trusted);
    if (found.state !== 'signed') continue;
    const entries = found.items.flatMap((item) => item.entries ?? []);
    yield { file: join(folder, FOLDER, name), head: found.log, entries: decoded(entries) };
  }
}

/** By request: entries removed by erasures that have begun and have no receipt yet. */
export function* openEntries(
  folder: string,
): Generator<{ readonly id: string; readonly entries: readonly Buffer[] }> {
  const { items } = new ProgressLog(folder);
  for (const { request: id } of new Requests(folder).begun())
    yield { id, entries: decoded(items.flatMap(({ entries }) => entries?.[id] ?? [])) };
}

function decoded(entries: readonly string[]): Buffer[] {
  return entries.map((entry) => Buffer.from(entry, 'base64')).filter(({ length }) => length === ENTRY_BYTES);
}
