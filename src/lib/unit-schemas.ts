import { z } from 'zod';
import { parseBytes, parseDuration } from './units.ts';

/** Bytes, written as `128MiB` or a number. */
export const size = z.union([z.string(), z.number()]).transform(unit(parseBytes));

/** Milliseconds, written as `15s` or a number. */
export const duration = z.union([z.string(), z.number()]).transform(unit(parseDuration));

function unit(parse: (value: string | number) => number) {
  return (value: string | number, context: z.RefinementCtx): number => {
    try {
      return parse(value);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'not valid' });
      return z.NEVER;
    }
  };
}
