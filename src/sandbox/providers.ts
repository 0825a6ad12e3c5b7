const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** How fast the bulk trigger goes through connections of a provider. */
export type Throttle =
  | { readonly kind: 'window'; readonly connections: number; readonly everyMs: number }
  | { readonly kind: 'at-a-time'; readonly connections: number };

export const USUAL: Throttle = { kind: 'window', connections: 8, everyMs: MINUTE };

/** The sixteen provider identifiers that the bulk trigger takes, with the documented rates. All of them are made up. */
export const PROVIDERS: Readonly<Record<string, Throttle>> = {
  made_up: USUAL,
  made_up_slow: { kind: 'window', connections: 2, everyMs: MINUTE },
  made_up_bulk_a: { kind: 'at-a-time', connections: 250 },
  made_up_bulk_b: { kind: 'at-a-time', connections: 250 },
  made_up_slowest: { kind: 'window', connections: 1, everyMs: 15 * MINUTE },
  made_up_batch: { kind: 'window', connections: 150, everyMs: 5 * MINUTE },
  made_up_7: USUAL,
  made_up_8: USUAL,
  made_up_9: USUAL,
  made_up_10: USUAL,
  made_up_11: USUAL,
  made_up_12: USUAL,
  made_up_13: USUAL,
  made_up_14: USUAL,
  made_up_15: USUAL,
  made_up_16: USUAL,
};
