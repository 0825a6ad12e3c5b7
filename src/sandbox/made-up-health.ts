import { pick, randomOf, uuidOf, type Name } from './seeded.ts';

export type Json = Readonly<Record<string, unknown>>;

/** A value to make: a range of whole numbers (a third member is the number of decimals), one of some texts, an object of values, or itself. */
export type Made =
  | readonly [low: number, high: number, decimals?: number]
  | readonly [string, ...string[]]
  | { readonly [member: string]: Made }
  | number
  | boolean
  | null;

/** The user of an item, and where the item stands in the user's history. */
export interface Subject {
  readonly id: string;
  readonly index: number;
  /** They take turns. */
  readonly sources: readonly string[];
}

/** Parameters of the made-up data. */
export interface HealthPlan {
  readonly seed: Name;
  /** Start of the data, milliseconds since the epoch; a UTC midnight. */
  readonly sinceMs: number;
  readonly days: number;
  /** Samples of a series on a day. */
  readonly samplesPerDay: number;
}

export const DAY_MS = 86_400_000;
const OFFSETS_S = [0, 36_000, -28_800] as const;
const SOURCE_TYPES = ['phone', 'watch', 'app'] as const;
/** So often an item is corrected. */
const CORRECTED_SHARE = 0.1;

/** Seconds between UTC and the local time of a user. */
export function offsetOf({ index }: Pick<Subject, 'index'>): number {
  return OFFSETS_S[index % OFFSETS_S.length] ?? 0;
}

export function timeZoneOf({ index }: Pick<Subject, 'index'>): string {
  return ['Etc/UTC', 'Etc/GMT-10', 'Etc/GMT+8'][index % OFFSETS_S.length] ?? 'Etc/UTC';
}

export function sourceOf({ id }: Pick<Subject, 'id'>, provider: string): Json {
  const type = SOURCE_TYPES[Number.parseInt(id.slice(0, 1), 16) % SOURCE_TYPES.length];
  return { provider, type, app_id: 'made.up.app', device_id: uuidOf('device', id, provider) };
}

/** Whether something is among those that get another value later. */
export function isCorrected(...names: readonly Name[]): boolean {
  return randomOf('corrected', ...names)() < CORRECTED_SHARE;
}

export function make(random: () => number, made: Made): unknown {
  if (typeof made !== 'object' || made === null) return made;
  if (!Array.isArray(made)) return makeAll(random, made as { readonly [member: string]: Made });
  const [low, high, decimals = 0] = made as readonly [number, number, number?];
  if (typeof low === 'string') return pick(random, made as unknown as readonly [string, ...string[]]);
  return Number((low + random() * (high - low)).toFixed(decimals));
}

export function makeAll(random: () => number, members: Readonly<Record<string, Made>>): Json {
  return Object.fromEntries(Object.entries(members).map(([name, made]) => [name, make(random, made)]));
}

/** ISO 8601 with an offset, whole seconds. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', '+00:00');
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
