import type { Request } from 'express';
import { z } from 'zod';
import { MillraceError } from '../core/errors.ts';

/** The body of a request as its schema has it; without one it is that of an empty object. @throws MillraceError usage */
export function bodyOf<T extends z.ZodType>(schema: T, request: Request): z.output<T> {
  const { data, error } = schema.safeParse(Object(request.body));
  if (error !== undefined) throw new MillraceError('usage', z.prettifyError(error));
  return data;
}
