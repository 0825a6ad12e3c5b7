import type { ZodType } from 'zod';

/**
 * Checks options against a schema and fills in defaults.
 * @throws Error whose message names each key that is wrong: `rotate.bytes: …; partitionBy[0]: …`
 */
export function parseOptionsWith<T>(schema: ZodType<T>, options: unknown): T {
  const result = schema.safeParse(options ?? {});
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    const key = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
    return key === '' ? message : `${key.replace(/^\./, '')}: ${message}`;
  });
  throw new Error(problems.join('; '));
}
