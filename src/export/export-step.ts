import { z } from 'zod';

const count = z.number().int().nonnegative();
const inside = z
  .string()
  .refine(
    (path) => path.split('/').every((level) => !['', '.', '..'].includes(level)) && !path.includes('\0'),
  );

export const exportStep = z.object({
  step: z.number().int().positive(),
  /** Steps whose files these replace, because what they were made of has changed. */
  replaces: z.array(count),
  sources: z.array(
    z.object({
      root: z.string(),
      file: z.string(),
      sha256: z.string(),
      /** What of it could not be read: it is read again until all of it can. Records that could. Earlier versions noted neither. */
      problems: count.default(0),
      records: count.optional(),
    }),
  ),
  files: z.array(
    z.object({ file: inside, table: z.string(), rows: count, bytes: count, sha256: z.string() }),
  ),
  /** Files of the steps replaced. */
  removes: z.array(inside),
  records: count,
  rejects: count,
  without_table: z.record(z.string(), count).default({}),
  /** Rows in which each column had a value, by table: what later steps no longer have is told by it. */
  filled: z.record(z.string(), z.record(z.string(), count)).default({}),
  /** Types of the columns in its files, by table. Steps of earlier versions did not note them. */
  types: z.record(z.string(), z.record(z.string(), z.string())).default({}),
  problems: count,
  erased: count,
  /** Sealed records that were opened, and how many keys had been destroyed by then. */
  sealed: count,
  destroyed: count,
});

/** A part of an export that is there as a whole or not at all; one line of the ledger. */
export type ExportStep = z.output<typeof exportStep>;
