import type { RequestHeaders } from '../core/verifier.ts';

/** The value of one header; a repeated one is joined as HTTP says. Absent and empty are the same: `null`. */
export function headerOf(headers: RequestHeaders, name: string): string | null {
  const value = headers[name];
  if (typeof value === 'string') return value === '' ? null : value;
  return value === undefined || value.length === 0 ? null : value.join(', ');
}
