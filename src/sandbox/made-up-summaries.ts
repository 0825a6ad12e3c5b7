import { DAY_MS, dayOf, makeNamed, shapeOf, sourceOf, stamp, zoneOf } from './made-up-health.ts';
import type { HealthPlan, Json, Range, Shape, Subject } from './made-up-health.ts';
import { uuidOf } from './seeded.ts';

/** Where an item stands: `day` counts from the first day with data, and its midnight is that of the user. */
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
  readonly shape: Shape;
  /** Members that depend on the place. */
  readonly placed: (place: Place, values: Json) => object;
}

const HOUR_MS = 3_600_000;

const dated = ({ date, midnightMs }: Place): object => ({ date: stamp(midnightMs), calendar_date: date });
const beside = ({ user, provider }: Place): object => {
  const { type, app_id, device_id } = sourceOf(user, provider);
  return { source_provider: provider, source_type: type, source_app_id: app_id, source_device_id: device_id };
};
const zoned = ({ user }: Place): object => ({ timezone_offset: zoneOf(user).timezone_offset });
const session = (place: Place, hour: number, hours: number): object => ({
  session_start: stamp(place.midnightMs + hour * HOUR_MS),
  session_end: stamp(place.midnightMs + (hour + hours) * HOUR_MS),
  time_zone: zoneOf(place.user).time_zone,
  ...beside(place),
});
/** Sleep begins on the evening before its day. */
const BEDTIME_H = -1.5;

/** Summaries beside meals, by resource. */
export const SUMMARIES: Readonly<Record<string, Summary>> = {
  activity: {
    every: 1,
    shape: shapeOf(`calories_total 1500..3200.1; calories_active 100..1200.1; steps 0..20000;
      daily_movement 0..15000.1; distance 0..15000.1; low 0..300; medium 0..120; high 0..60; floors_climbed 0..30;
      heart_rate.avg_bpm 60..90; heart_rate.min_bpm 40..60; heart_rate.max_bpm 100..190;
      heart_rate.resting_bpm 45..70; heart_rate.avg_walking_bpm 70..110; wheelchair_use true; wheelchair_push 0..900`),
    placed: (place) => ({ ...dated(place), ...zoneOf(place.user) }),
  },
  sleep: {
    every: 1,
    shape: shapeOf(`type long_sleep|short_sleep|acknowledged_nap|unknown; awake 300..3600; light 7200..14400;
      rem 1800..7200; deep 1800..7200; score 40..100; recovery_readiness_score 30..100; hr_lowest 40..55;
      hr_average 50..65; hr_resting 45..60; efficiency 70..99.9; latency 60..1800; temperature_delta -1..1.05;
      skin_temperature 33..36.05; hr_dip 5..25.5; state tentative|confirmed; average_hrv 20..120.5;
      respiratory_rate 12..20.05; sleep_stream.hrv []`),
    placed: (place, { awake, light, rem, deep }) => {
      const total = Number(light) + Number(rem) + Number(deep);
      const duration = total + Number(awake);
      const start = place.midnightMs + BEDTIME_H * HOUR_MS;
      const times = { bedtime_start: stamp(start), bedtime_stop: stamp(start + duration * 1000) };
      return { ...dated(place), ...times, ...zoned(place), duration, total };
    },
  },
  workouts: {
    every: 2,
    shape: shapeOf(`title Made-up workout; average_hr 100..150; max_hr 150..190; distance 1000..20000.5;
      calories 100..900.5; sport.id 1..9; sport.name Running|Walking; sport.slug running|walking; hr_zones [60,120,0];
      moving_time 600..2700; total_elevation_gain 0..500.5; elev_high 100..600.5; elev_low 0..100.5;
      average_speed 1..5.05; max_speed 5..9.05; average_watts 100..250.5; device_watts 100..250.5;
      max_watts 250..700.5; weighted_average_watts 100..250.5; steps 500..9000; map.polyline made~up;
      map.summary_polyline made`),
    placed: (place) => {
      const start = place.midnightMs + 18 * HOUR_MS;
      const times = { time_start: stamp(start), time_end: stamp(start + 0.75 * HOUR_MS) };
      return { provider_id: `made-up-${place.day}`, calendar_date: place.date, ...times, ...zoned(place) };
    },
  },
  body: {
    every: 1,
    shape: shapeOf(`weight 50..110.5; fat 8..40.5; water_percentage 45..65.5; muscle_mass_percentage 30..50.5;
      visceral_fat_index 1..12.5; bone_mass_percentage 2..5.5; body_mass_index 18..35.5;
      lean_body_mass_kilogram 40..80.5; waist_circumference_centimeter 60..120.5`),
    placed: dated,
  },
  electrocardiogram: {
    every: 7,
    shape:
      shapeOf(`voltage_sample_count 15000..16000; heart_rate_mean 50..110; sampling_frequency_hz 500..512.5;
      classification sinus_rhythm|atrial_fibrillation|inconclusive; source_device_model made-up watch;
      inconclusive_cause high_heart_rate|low_heart_rate|poor_reading; algorithm_version made-up`),
    placed: (place) => session(place, 12, 0.01),
  },
  sleep_cycle: {
    every: 1,
    shape: shapeOf(`stage_start_offset_second [0,1800,5400]; stage_end_offset_second [1800,5400,7200];
      stage_type [2,1,3]`),
    placed: (place) => ({ sleep_id: itemId('sleep', place), ...session(place, BEDTIME_H, 2) }),
  },
  menstrual_cycle: {
    every: 28,
    shape: shapeOf('is_predicted false'),
    placed: (place) => {
      const on = (days: number): string => dayOf(Date.parse(place.date) + days * DAY_MS);
      const noted = NOTED.map(([name, days, what]) => [name, [{ date: on(days), ...what }]] as const);
      const period = { period_start: on(0), period_end: on(4), cycle_end: on(27) };
      return { ...period, ...Object.fromEntries(noted), ...beside(place) };
    },
  },
  profile: {
    // One, of the first day.
    every: Infinity,
    shape:
      shapeOf(`height 150..200; birth_date 1990-01-01; wheelchair_use true; gender female|male|other|unknown;
      sex female|male|other`),
    placed: () => ({}),
  },
};

/** What is noted on a day of a cycle. */
const NOTED: readonly (readonly [name: string, day: number, what: object])[] = [
  ['menstrual_flow', 0, { flow: 'medium' }],
  ['cervical_mucus', 12, { quality: 'creamy' }],
  ['intermenstrual_bleeding', 15, {}],
  ['contraceptive', 0, { type: 'unspecified' }],
  ['detected_deviations', 27, { deviation: 'irregular_menstrual_cycles' }],
  ['ovulation_test', 13, { test_result: 'positive' }],
  ['home_pregnancy_test', 26, { test_result: 'negative' }],
  ['home_progesterone_test', 20, { test_result: 'indeterminate' }],
  ['sexual_activity', 9, { protection_used: null }],
  ['basal_body_temperature', 13, { value: 36.7 }],
];

/**
 * Items of a resource in order of days, one for each provider.
 * @param corrected with the corrections that are made later
 */
export function* madeUpSummaries(
  plan: HealthPlan,
  resource: string,
  user: Subject,
  { startMs, endMs, provider: only }: Range,
  corrected: boolean,
): Generator<Json> {
  const summary = SUMMARIES[resource];
  if (summary === undefined) return;
  const indexOf = (ms: number): number => Math.floor((ms - plan.sinceMs) / DAY_MS);
  const last = Math.min(plan.days - 1, indexOf(endMs));
  for (let day = Math.max(0, indexOf(startMs)); day <= last; day += 1) {
    if (day % summary.every !== 0) continue;
    const utcMs = plan.sinceMs + day * DAY_MS;
    const midnightMs = utcMs - zoneOf(user).timezone_offset * 1000;
    for (const provider of user.sources) {
      if ((only ?? provider) !== provider) continue;
      const place = { user, provider, day, midnightMs, date: dayOf(utcMs) };
      const names = [plan.seed, resource, user.id, provider, day];
      const { isAnother, values } = makeNamed(summary.shape, names, corrected);
      const created = midnightMs + 12 * HOUR_MS;
      yield {
        id: itemId(resource, place),
        user_id: user.id,
        ...summary.placed(place, values),
        ...values,
        source: sourceOf(user, provider),
        created_at: stamp(created),
        updated_at: stamp(created + (isAnother ? DAY_MS : 0)),
      };
    }
  }
}

/** A UUID with the user, the day and the provider in its last digits, so that the item can be found again. */
function itemId(resource: string, { user, provider, day }: Place): string {
  const numbers = hex(user.index, 6) + hex(day, 4) + hex(user.sources.indexOf(provider), 2);
  return uuidOf(resource, user.id, provider, day).slice(0, 24) + numbers;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** The index of the user and the day of the item with such an id. */
export function placeIn(id: string): { readonly index: number; readonly day: number } {
  return { index: Number.parseInt(id.slice(24, 30), 16), day: Number.parseInt(id.slice(30, 34), 16) };
}
