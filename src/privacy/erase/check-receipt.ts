import { z } from 'zod';
import type { ErasureReceipt } from '../../core/erasure.ts';
import { checkSigned } from '../../core/signature.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.iso.datetime();
const entry = z.string().regex(/^[A-Za-z0-9+/]{43}=$/);

/** All that a receipt may say: anything else could be data of the user. */
const RECEIPT = z.strictObject({
  receipt: z.string().regex(/^[0-9a-f]{1,64}$/),
  subject_hash: z.string().regex(/^[0-9a-f]{16,128}$/),
  by: z.enum(['user', 'client_user']),
  requested_at: time,
  due_at: time,
  begun_at: time,
  finished_at: time,
  records_removed: z.int().nonnegative(),
  stores: z.array(z.string()),
  not_searched: z.array(z.string()),
  not_reached: z.array(z.string()).optional(),
  items: z.array(
    z.strictObject({
      store: z.string(),
      item: z.string(),
      removed: z.int().positive(),
      sha256_before: hash.nullable(),
      sha256_after: hash.nullable(),
      entries: z.array(entry).optional(),
    }),
  ),
  log: z.strictObject({ origin: z.string(), size: z.int().nonnegative(), root: entry }).optional(),
  signed_by: z.string().optional(),
  signature: z.string().optional(),
});

/** What every receipt says: without it nothing can be shown of one. */
const LEAST = RECEIPT.pick({ not_searched: true, not_reached: true })
  .extend({ items: z.array(z.looseObject({})) })
  .loose();

export type CheckedReceipt = ReturnType<typeof checkReceipt>;

/**
 * Checks that a receipt is as it was signed, and says only what receipts say.
 * @param trusted public keys that may have signed it; empty: any
 * @returns `signedBy`: the public key; null when the receipt is not signed, or its signature is invalid
 * @throws RangeError for a text that is not a receipt
 */
export function checkReceipt(text: string, trusted: ReadonlySet<string>) {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RangeError('is not JSON');
  }
  const parsed = RECEIPT.safeParse(value);
  if (!LEAST.safeParse(value).success) throw new RangeError('is not the receipt of an erasure');
  const { state, by } = checkSigned('receipt', JSON.stringify(value));
  const problems: string[] = [];
  if (state === 'unsigned') problems.push('it is not signed');
  if (state === 'invalid') problems.push('it is not as it was signed');
  if (by !== null && trusted.size > 0 && !trusted.has(by))
    problems.push(`it is signed by ${by}, which is not a key that was given`);
  for (const { path, message } of parsed.error?.issues ?? [])
    problems.push(`${path.join('.') || 'it'}: ${message}: receipts do not say that`);
  const receipt = value as ErasureReceipt;
  if (parsed.success && sum(receipt) !== receipt.records_removed)
    problems.push(`it counts ${receipt.records_removed} records, and its items ${sum(receipt)}`);
  return { receipt, signedBy: by, problems };
}

function sum({ items }: ErasureReceipt): number {
  return items.reduce((all, { removed }) => all + removed, 0);
}
