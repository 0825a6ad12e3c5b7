import type { Request, Response } from 'express';
import { z } from 'zod';
import { MillraceError } from '../../core/errors.ts';

/** Answers with problem details, RFC 9457. */
export function sendProblem(response: Response, status: number, code: string, detail: string): void {
  response.status(status).type('application/problem+json');
  response.send(JSON.stringify({ type: 'about:blank', title: detail, status, code, detail }));
}

/** The body of a request as its schema has it; without one it is that of an empty object. @throws MillraceError usage */
export function bodyOf<T extends z.ZodType>(schema: T, request: Request): z.output<T> {
  const { data, error } = schema.safeParse(Object(request.body));
  if (error !== undefined) throw new MillraceError('usage', z.prettifyError(error));
  return data;
}
