/** True for a day of the calendar as `YYYY-MM-DD`; Date.parse would accept 2026-02-30 as a day in March. */
export function isCalendarDay(text: string): boolean {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}
