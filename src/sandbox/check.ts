import { z, type ZodType } from 'zod';

/** A UUID of any version. */
export const uuid = z.guid('Input should be a valid UUID').transform((value) => value.toLowerCase());

/** A calendar day, `YYYY-MM-DD`. */
export function isDay(text: string): boolean {
  return z.iso.date().safeParse(text).success;
}

/** A whole number in a query, with inclusive bounds. */
export function count(least: number, most: number, fallback: number) {
  return z
    .string()
    .regex(/^-?\d+$/, 'Input should be a valid integer')
    .transform(Number)
    .pipe(z.number().min(least).max(most))
    .default(fallback);
}

/** Parameters of a page. */
export const PAGING = { page: count(1, Number.MAX_SAFE_INTEGER, 1), size: count(1, 100, 50) };

export function pageOf(
  name: string,
  all: readonly object[],
  { page, size }: { readonly page: number; readonly size: number },
): object {
  return { [name]: all.slice((page - 1) * size, page * size), total: all.length, page, size };
}

/** An opaque cursor with the last position that the client has seen. */
export const cursor = z
  .string()
  .transform((value) => /^place:(\d+)$/.exec(Buffer.from(value, 'base64url').toString())?.[1])
  .pipe(z.string('Unknown cursor').transform(Number))
  .optional();

export function writeCursor(place: number): string {
  return Buffer.from(`place:${place}`).toString('base64url');
}

/** A parameter that can be repeated: `labs=a&labs=b`. */
export const repeated = z.union([z.string().transform((one) => [one]), z.array(z.string())]);

/**
 * Reads one part of a request.
 * @throws Refusal 422 whose detail is a list of `{loc, msg, type}`
 */
export function check<T>(schema: ZodType<T>, value: unknown, part: 'path' | 'query' | 'body'): T {
  const result = schema.safeParse(value ?? {});
  if (result.success) return result.data;
  const { issues } = result.error;
  throw new Refusal(
    422,
    issues.map(({ path, message, code }) => ({ loc: [part, ...path], msg: message, type: code })),
  );
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/;

const EARLIEST_MS = -8.64e15;

/** Milliseconds of a bound. A day without a time is 00:00:00 as a start, and 23:59:59 as an end. A start can be left out. */
export function bound(edge: 'start' | 'end') {
  const time = z.string().transform((value, context) => {
    const whole = DAY.test(value);
    const zoned = /(Z|[+-]\d{2}:?\d{2})$/.test(value) ? value : `${value}Z`;
    // In a query an unescaped + is a blank.
    const text = whole ? `${value}T${edge === 'start' ? '00:00:00' : '23:59:59'}Z` : zoned.replace(' ', 'T');
    const ms = whole || DATE_TIME.test(value) ? Date.parse(text) : NaN;
    if (!Number.isNaN(ms) && isDay(value.slice(0, 10))) return ms;
    context.addIssue({ code: 'custom', message: 'Input should be a valid date or datetime' });
    return z.NEVER;
  });
  return edge === 'start' ? time.default(EARLIEST_MS) : time;
}

/** An error answer: `{"detail": …}`. */
export class Refusal extends Error {
  readonly status: number;
  readonly detail: unknown;

  constructor(status: number, detail: unknown) {
    super(typeof detail === 'string' ? detail : JSON.stringify(detail));
    this.status = status;
    this.detail = detail;
  }
}
