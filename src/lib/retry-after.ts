/**
 * Milliseconds to wait by a Retry-After header: seconds, or an HTTP date (RFC 9110, 10.2.3).
 * @param nowMs milliseconds since the epoch, for the date form
 * @returns null when the header is missing or invalid; 0 for a date in the past
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1000);
  // Date.parse accepts too much; an HTTP date begins with a weekday.
  if (!/^[A-Za-z]{3,9},? /.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
