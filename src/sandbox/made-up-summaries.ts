import {
  DAY_MS,
  dayOf,
  isCorrected,
  makeAll,
  offsetOf,
  sourceOf,
  stamp,
  timeZoneOf,
  type HealthPlan,
  type Json,
  type Made,
  type Subject,
} from './made-up-health.ts';
import { randomOf, uuidOf } from './seeded.ts';

/** An item of one day of a provider: `day` counts from the first day with data, and `midnightMs` is local. */
interface Place {
  readonly user: Subject;
  readonly provider: string;
  readonly day: number;
  readonly midnightMs: number;
  readonly date: string;
}

interface Summary {
  /** Days from one item to the next. */
  readonly every: number;
  /** Times and names of an item, before its values. */
  readonly place: (place: Place, values: Json) => object;
  readonly values: Readonly<Record<string, Made>>;
}

const HOUR_MS = 3_600_000;

const dated = ({ date, midnightMs }: Place): object => ({ date: stamp(midnightMs), calendar_date: date });
const beside = ({ user, provider }: Place): object => {
  const { type, app_id, device_id } = sourceOf(user, provider);
  return { source_provider: provider, source_type: type, source_app_id: app_id, source_device_id: device_id };
};
const zone = ({ user }: Place): object => ({ time_zone: timeZoneOf(user) });
const offset = ({ user }: Place): object => ({ timezone_offset: offsetOf(user) });
/** From the evening before. */
const bedtime = ({ midnightMs }: Place): number => midnightMs - 1.5 * HOUR_MS;
const numberOf = (values: Json, ...names: readonly string[]): number =>
  names.reduce((sum, name) => sum + Number(values[name]), 0);

/** Summaries beside meals, by resource. */
export const SUMMARIES: Readonly<Record<string, Summary>> = {
  activity: {
    every: 1,
    place: (place) => ({ ...dated(place), ...zone(place), ...offset(place) }),
    values: {
      calories_total: [1500, 3200, 1],
      calories_active: [100, 1200, 1],
      steps: [0, 20_000],
      daily_movement: [0, 15_000, 1],
      distance: [0, 15_000, 1],
      low: [0, 300],
      medium: [0, 120],
      high: [0, 60],
      floors_climbed: [0, 30],
      heart_rate: {
        avg_bpm: [60, 90],
        min_bpm: [40, 60],
        max_bpm: [100, 190],
        resting_bpm: [45, 70],
        avg_walking_bpm: [70, 110],
      },
      wheelchair_use: true,
      wheelchair_push: [0, 900],
    },
  },
  sleep: {
    every: 1,
    place: (place, values) => {
      const total = numberOf(values, 'light', 'rem', 'deep');
      const duration = total + numberOf(values, 'awake');
      const start = bedtime(place);
      const times = { bedtime_start: stamp(start), bedtime_stop: stamp(start + duration * 1000) };
      return { ...dated(place), ...times, ...offset(place), duration, total };
    },
    values: {
      type: ['long_sleep', 'short_sleep', 'acknowledged_nap', 'unknown'],
      awake: [300, 3600],
      light: [7200, 14_400],
      rem: [1800, 7200],
      deep: [1800, 7200],
      score: [40, 100],
      recovery_readiness_score: [30, 100],
      hr_lowest: [40, 55],
      hr_average: [50, 65],
      hr_resting: [45, 60],
      efficiency: [70, 99, 1],
      latency: [60, 1800],
      temperature_delta: [-1, 1, 2],
      skin_temperature: [33, 36, 2],
      hr_dip: [5, 25, 1],
      state: ['tentative', 'confirmed'],
      average_hrv: [20, 120, 1],
      respiratory_rate: [12, 20, 2],
    },
  },
  workouts: {
    every: 2,
    place: (place) => {
      const start = place.midnightMs + 18 * HOUR_MS;
      const times = { time_start: stamp(start), time_end: stamp(start + 0.75 * HOUR_MS) };
      const provider_id = `made-up-workout-${place.day}`;
      return { title: 'Made-up workout', calendar_date: place.date, ...times, ...offset(place), provider_id };
    },
    values: {
      average_hr: [100, 150],
      max_hr: [150, 190],
      distance: [1000, 20_000, 1],
      calories: [100, 900, 1],
      sport: { id: [1, 9], name: ['Running', 'Walking'], slug: ['running', 'walking'] },
      moving_time: [600, 2700],
      total_elevation_gain: [0, 500, 1],
      elev_high: [100, 600, 1],
      elev_low: [0, 100, 1],
      average_speed: [1, 5, 2],
      max_speed: [5, 9, 2],
      average_watts: [100, 250, 1],
      device_watts: [100, 250, 1],
      max_watts: [250, 700, 1],
      weighted_average_watts: [100, 250, 1],
      steps: [500, 9000],
      map: { polyline: ['made~up', 'un~known'], summary_polyline: ['made', 'up'] },
    },
  },
  body: {
    every: 1,
    place: dated,
    values: {
      weight: [50, 110, 1],
      fat: [8, 40, 1],
      water_percentage: [45, 65, 1],
      muscle_mass_percentage: [30, 50, 1],
      visceral_fat_index: [1, 12, 1],
      bone_mass_percentage: [2, 5, 1],
      body_mass_index: [18, 35, 1],
      lean_body_mass_kilogram: [40, 80, 1],
      waist_circumference_centimeter: [60, 120, 1],
    },
  },
  electrocardiogram: {
    every: 7,
    place: (place) => ({ ...session(place, 12), ...zone(place), ...beside(place), ...device }),
    values: {
      voltage_sample_count: [15_000, 16_000],
      heart_rate_mean: [50, 110],
      sampling_frequency_hz: [500, 512, 1],
      classification: ['sinus_rhythm', 'atrial_fibrillation', 'inconclusive'],
      inconclusive_cause: ['high_heart_rate', 'low_heart_rate', 'poor_reading'],
      algorithm_version: ['1', '2'],
    },
  },
  sleep_cycle: {
    every: 1,
    place: (place) => ({
      sleep_id: itemId('sleep', place),
      session_start: stamp(bedtime(place)),
      session_end: stamp(bedtime(place) + 2 * HOUR_MS),
      stage_start_offset_second: [0, 1800, 5400],
      stage_end_offset_second: [1800, 5400, 7200],
      stage_type: [2, 1, 3],
      ...zone(place),
      ...beside(place),
    }),
    values: {},
  },
  menstrual_cycle: {
    every: 28,
    place: (place) => {
      const on = (days: number): string => dayOf(Date.parse(place.date) + days * DAY_MS);
      return {
        period_start: on(0),
        period_end: on(4),
        cycle_end: on(27),
        menstrual_flow: [{ date: on(0), flow: 'medium' }],
        cervical_mucus: [{ date: on(12), quality: 'creamy' }],
        intermenstrual_bleeding: [{ date: on(15) }],
        contraceptive: [{ date: on(0), type: 'unspecified' }],
        detected_deviations: [{ date: on(27), deviation: 'irregular_menstrual_cycles' }],
        ovulation_test: [{ date: on(13), test_result: 'positive' }],
        home_pregnancy_test: [{ date: on(26), test_result: 'negative' }],
        home_progesterone_test: [{ date: on(20), test_result: 'indeterminate' }],
        sexual_activity: [{ date: on(9), protection_used: null }],
        basal_body_temperature: [{ date: on(13), value: 36.7 }],
        ...beside(place),
      };
    },
    values: { is_predicted: false },
  },
  profile: {
    // One, of the first day.
    every: Infinity,
    place: () => ({ birth_date: '1990-01-01' }),
    values: {
      height: [150, 200],
      wheelchair_use: true,
      gender: ['female', 'male', 'other', 'unknown'],
      sex: ['female', 'male', 'other'],
    },
  },
};

const device = { source_device_model: 'made-up watch' };

function session({ midnightMs }: Place, hour: number): object {
  const start = midnightMs + hour * HOUR_MS;
  return { session_start: stamp(start), session_end: stamp(start + 30_000) };
}

/** What is asked for: bounds are days, inclusive. */
export interface SummaryQuery {
  readonly user: Subject;
  readonly firstDay: string;
  readonly lastDay: string;
  readonly provider?: string | undefined;
  /** With the corrections that were made by now. */
  readonly corrected: boolean;
}

/** Items of a resource in order of days, one for each provider. */
export function* madeUpSummaries(plan: HealthPlan, resource: string, query: SummaryQuery): Generator<Json> {
  const { user, firstDay, lastDay } = query;
  const { every = 1 } = SUMMARIES[resource] ?? {};
  const indexOf = (day: string): number => (Date.parse(day) - plan.sinceMs) / DAY_MS;
  const last = Math.min(plan.days - 1, indexOf(lastDay));
  for (let day = Math.max(0, indexOf(firstDay)); day <= last; day += 1) {
    if (day % every !== 0) continue;
    for (const provider of user.sources) {
      if (query.provider !== undefined && query.provider !== provider) continue;
      yield summaryOf(plan, resource, placeOf(plan, user, provider, day), query.corrected);
    }
  }
}

export function placeOf({ sinceMs }: HealthPlan, user: Subject, provider: string, day: number): Place {
  const utcMs = sinceMs + day * DAY_MS;
  return { user, provider, day, midnightMs: utcMs - offsetOf(user) * 1000, date: dayOf(utcMs) };
}

/** @param corrected whether corrections were made */
export function summaryOf({ seed }: HealthPlan, resource: string, place: Place, corrected: boolean): Json {
  const { user, provider, day, midnightMs } = place;
  const names = [seed, resource, user.id, provider, day];
  const isAnother = corrected && isCorrected(...names);
  const { place: around, values: ranges } = SUMMARIES[resource] ?? { place: () => ({}), values: {} };
  const values = makeAll(randomOf(...names, ...(isAnother ? ['corrected'] : [])), ranges);
  const created = midnightMs + 12 * HOUR_MS;
  return {
    id: itemId(resource, place),
    user_id: user.id,
    ...around(place, values),
    ...values,
    source: sourceOf(user, provider),
    created_at: stamp(created),
    updated_at: stamp(created + (isAnother ? DAY_MS : 0)),
  };
}

/** A UUID that says where the item is found again: user, day and provider are in its last digits. */
function itemId(resource: string, { user, provider, day }: Place): string {
  const found = hex(user.index, 6) + hex(day, 4) + hex(user.sources.indexOf(provider), 2);
  return uuidOf(resource, user.id, provider, day).slice(0, 24) + found;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
