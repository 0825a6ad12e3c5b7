import type { Refusal, RequestHeaders } from '../../core/verifier.ts';

/** The value of a header; a repeated one is joined as in HTTP. Null for a missing or empty one. */
export function headerOf(headers: RequestHeaders, name: string): string | null {
  const value = headers[name];
  if (typeof value === 'string') return value === '' ? null : value;
  return value === undefined || value.length === 0 ? null : value.join(', ');
}

const SECONDS = /^(?:0|[1-9]\d{0,11})$/;

/**
 * Checks a signed timestamp: whole seconds since the Unix epoch, written as digits only.
 * @param now and `tolerance`: milliseconds
 * @returns the refusal; null when the time is within the tolerance
 */
export function checkTimestamp(text: string, now: number, tolerance: number): Refusal | null {
  if (!SECONDS.test(text)) {
    return { ok: false, code: 'timestamp_invalid', detail: 'the timestamp header is not whole seconds' };
  }
  const age = now - Number(text) * 1000;
  if (age > tolerance) {
    return { ok: false, code: 'timestamp_too_old', detail: `signed more than ${tolerance} ms ago` };
  }
  if (-age > tolerance) {
    return {
      ok: false,
      code: 'timestamp_too_new',
      detail: `signed more than ${tolerance} ms ahead of this clock`,
    };
  }
  return null;
}
