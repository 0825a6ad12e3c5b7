/** Outcomes that are answered with 2xx. */
export const TAKEN: ReadonlySet<string> = new Set(['accepted', 'duplicate', 'quarantined', 'erased']);
