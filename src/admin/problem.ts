import type { Response } from 'express';

/** Answers with problem details, RFC 9457. */
export function sendProblem(response: Response, status: number, code: string, detail: string): void {
  response.status(status).type('application/problem+json');
  response.send(JSON.stringify({ type: 'about:blank', title: detail, status, code, detail }));
}
