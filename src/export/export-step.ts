import { z } from 'zod';
import { dirname } from 'node:path';

const count = z.number().int().nonnegative();
const inside = z
  .string()
  .refine(
    (path) => path.split('/').every((level) => !['', '.', '..'].includes(level)) && !path.includes('\0'),
  );

export const exportStep = z.object({
  step: z.number().int().positive(),
  /** Steps whose files these replace, because their sources have changed. */
  replaces: z.array(count),
  sources: z.array(
    z.object({
      root: z.string(),
      file: z.string(),
      sha256: z.string(),
      /** Lines that could not be read, because of which it is read again by each run, and records that could. */
      problems: count,
      records: count,
    }),
  ),
  /** Each below the export's folder, `/`-separated. */
  files: z.array(
    z.object({ file: inside, table: z.string(), rows: count, bytes: count, sha256: z.string() }),
  ),
  /** Files of the steps replaced. */
  removes: z.array(inside),
  /** Files of the replaced steps whose rows another program has written into its own files: they stay in the table. */
  keeps: z.array(inside).default([]),
  records: count,
  rejects: count,
  without_table: z.record(z.string(), count),
  /** Rows in which each column had a value, by table; later steps are compared with it. */
  filled: z.record(z.string(), z.record(z.string(), count)),
  /** Types of the columns in its files, by table. */
  types: z.record(z.string(), z.record(z.string(), z.string())),
  problems: count,
  erased: count,
  /** Sealed records that were opened, and how many keys had been destroyed by then. */
  sealed: count,
  destroyed: count,
});

/** A part of an export that is there as a whole or not at all; one line of the log. */
export type ExportStep = z.output<typeof exportStep>;

export type StepSource = ExportStep['sources'][number];

/** Steps that no other step has replaced, the oldest first. */
export function standingIn(steps: readonly ExportStep[]): ExportStep[] {
  const replaced = new Set(steps.flatMap(({ replaces }) => replaces));
  return steps.filter(({ step }) => !replaced.has(step));
}

/**
 * True when a step that could not read all of its sources is to be replaced by `made`, which read them again: not by the same
 * files, which consumers would load in vain, nor by less.
 * @param passedOver a step without files
 */
export function isBetter(step: ExportStep, made: ExportStep, passedOver: ExportStep | null): boolean {
  if (passedOver?.step === step.step) return true;
  const isWorse = made.sources.some(
    ({ problems, records }, nth) => problems > 0 && records < (step.sources[nth]?.records ?? 0),
  );
  return !isWorse && contentOf(step) !== contentOf(made);
}

function contentOf({ sources, files }: ExportStep): string {
  return JSON.stringify([
    sources.map(({ problems, records }) => [problems, records]),
    files.map(({ file, sha256 }) => `${dirname(file)} ${sha256}`).toSorted(),
  ]);
}
