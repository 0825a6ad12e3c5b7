import { pick, randomOf, uuidOf, type Name } from './seeded.ts';

export type Json = Readonly<Record<string, unknown>>;

/** The user of made-up data. */
export interface Subject {
  readonly id: string;
  readonly index: number;
  readonly sources: readonly string[];
}

export interface HealthPlan {
  readonly seed: Name;
  /** Start of the data, milliseconds since the epoch; a UTC midnight. */
  readonly sinceMs: number;
  readonly days: number;
  /** Samples of a series on a day. */
  readonly samplesPerDay: number;
}

export const DAY_MS = 86_400_000;
const ZONES = ['Etc/UTC', 'Etc/GMT-10', 'Etc/GMT+8'] as const;
const OFFSETS_S = [0, 36_000, -28_800] as const;
/** So many of the items are corrected later. */
const CORRECTED_SHARE = 0.1;

/** The time zone of a user, and its seconds from UTC. */
export function zoneOf({ index }: Pick<Subject, 'index'>) {
  return { time_zone: ZONES[index % 3] ?? ZONES[0], timezone_offset: OFFSETS_S[index % 3] ?? 0 };
}

export function sourceOf({ id }: Pick<Subject, 'id'>, provider: string): Json {
  const type = id < '8' ? 'phone' : 'watch';
  const older = { name: provider, slug: provider, logo: 'https://made-up.invalid/logo.png' };
  const workout = { sport: 'walking', workout_id: uuidOf('workout', id, provider) };
  return {
    provider,
    type,
    app_id: 'made.up.app',
    device_id: uuidOf('device', id, provider),
    ...workout,
    ...older,
  };
}

/** Makes what something of such names is like; something else for some of it once corrections are made. */
export function makeNamed(shape: Shape, names: readonly Name[], corrected: boolean) {
  const isAnother = corrected && randomOf('corrected', ...names)() < CORRECTED_SHARE;
  return { isAnother, values: make(shape, randomOf(...names, ...(isAnother ? ['corrected'] : []))) };
}

/** How to make the value at each path of an object. */
export type Shape = readonly (readonly [path: readonly string[], value: (random: () => number) => unknown])[];

/** Reads `path value; path value`: a value is a range (`1..9.9`, as precise as its end), a choice (`a|b`), JSON, or a text. */
export function shapeOf(text: string): Shape {
  const parts = text.split(';').map((part) => part.trim().split(' '));
  return parts.map(([path = '', ...words]) => [path.split('.'), valueOf(words.join(' '))] as const);
}

function valueOf(text: string): (random: () => number) => unknown {
  const [, low, high] = /^(-?[\d.]+?)\.\.(-?[\d.]+)$/.exec(text) ?? [];
  if (low !== undefined && high !== undefined) {
    const decimals = high.split('.')[1]?.length ?? 0;
    return (random) => Number((Number(low) + random() * (Number(high) - Number(low))).toFixed(decimals));
  }
  if (/^(\[.*\]|-?[\d.]+|true|false|null)$/.test(text)) return () => JSON.parse(text) as unknown;
  const [first = '', ...others] = text.split('|');
  return (random) => pick(random, [first, ...others]);
}

function make(shape: Shape, random: () => number): Json {
  const made: Record<string, unknown> = {};
  for (const [[name = '', inner], value] of shape) {
    if (inner === undefined) made[name] = value(random);
    else made[name] = { ...Object(made[name]), [inner]: value(random) };
  }
  return made;
}

/** What is asked for: inclusive bounds, milliseconds since the epoch; of summaries other than meals their days count. */
export interface Range {
  readonly startMs: number;
  readonly endMs: number;
  readonly provider?: string | undefined;
}

/** ISO 8601 with an offset, whole seconds. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', '+00:00');
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
