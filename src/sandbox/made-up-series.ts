import {
  DAY_MS,
  isCorrected,
  makeAll,
  offsetOf,
  sourceOf,
  stamp,
  type HealthPlan,
  type Json,
  type Made,
  type Subject,
} from './made-up-health.ts';
import { randomOf } from './seeded.ts';

interface Series {
  readonly unit: string;
  /** Seconds from the start of a sample to its end; 0 when it is of one moment. */
  readonly seconds: number;
  readonly values: Readonly<Record<string, Made>>;
}

const at = (unit: string, value: Made, more: Series['values'] = {}): Series => ({
  unit,
  seconds: 0,
  values: { ...more, value },
});
const during = (unit: string, value: Made, more: Series['values'] = {}): Series => ({
  ...at(unit, value, more),
  seconds: 300,
});
const SENSOR = { sensor_location: ['armpit', 'ear', 'finger', 'mouth'] } as const;

/** Series by their names in addresses. */
export const SERIES: Readonly<Record<string, Series>> = {
  afib_burden: during('%', [0, 5, 1]),
  basal_body_temperature: during('°C', [36, 37, 2]),
  blood_oxygen: at('%', [92, 100]),
  blood_pressure: { unit: 'mmHg', seconds: 0, values: { systolic: [100, 150], diastolic: [60, 95] } },
  body_fat: at('%', [8, 40, 1]),
  body_mass_index: during('index', [18, 35, 1]),
  body_temperature: during('°C', [36, 38, 2], SENSOR),
  body_temperature_delta: during('°C', [-1, 1, 2], SENSOR),
  body_weight: at('kg', [50, 110, 1]),
  caffeine: during('g', [0, 1, 2]),
  calories_active: during('kcal', [0, 200, 1]),
  calories_basal: at('kcal', [50, 90, 1]),
  carbohydrates: during('g', [0, 90, 1]),
  cholesterol: at('mmol/L', [2, 7, 1], { type: ['total', 'hdl', 'ldl', 'triglycerides'] }),
  daylight_exposure: during('min', [0, 5]),
  distance: during('m', [0, 900, 1]),
  electrocardiogram_voltage: at('mV', [-1, 1, 3], { type: ['lead_1', 'lead_2'] }),
  fall: during('count', 1),
  floors_climbed: at('count', [0, 5]),
  forced_expiratory_volume_1: during('L', [2, 5, 2]),
  forced_vital_capacity: during('L', [3, 6, 2]),
  glucose: at('mmol/L', [3.5, 11, 1], { type: ['automatic', 'manual_scan'] }),
  handwashing: during('count', 1),
  heart_rate_alert: during('count', 1, { type: ['low_heart_rate', 'high_heart_rate', 'irregular_rhythm'] }),
  heart_rate_recovery_one_minute: during('count', [10, 40]),
  heartrate: at('bpm', [45, 180]),
  hrv: at('rmssd', [20, 120, 1]),
  hypnogram: during('enum', [1, 4]),
  ige: at('kU/L', [0, 100, 1], { type: ['made_up_food'] }),
  igg: at('g/L', [6, 16, 1], { type: ['made_up_food'] }),
  inhaler_usage: during('count', [1, 3]),
  insulin_injection: during('unit', [1, 20, 1], {
    type: ['rapid_acting', 'long_acting'],
    delivery_mode: ['basal', 'bolus'],
    delivery_form: ['standard', 'extended'],
    bolus_purpose: ['meal', 'correction', 'mixed', 'unknown'],
  }),
  lean_body_mass: during('kg', [40, 80, 1]),
  mindfulness_minutes: during('min', [1, 5]),
  note: during('', ['made up', 'another made-up note']),
  peak_expiratory_flow_rate: during('L/min', [300, 700]),
  respiratory_rate: at('bpm', [12, 20, 1]),
  sleep_apnea_alert: during('count', 1),
  sleep_breathing_disturbance: during('count', [0, 9], { type: ['elevated', 'not_elevated'] }),
  stand_duration: during('min', [0, 5]),
  stand_hour: during('count', 1, { type: ['stood', 'idle'] }),
  steps: during('count', [0, 600]),
  stress_level: at('%', [0, 100]),
  uv_exposure: during('index', [0, 11]),
  vo2_max: during('mL/kg/min', [25, 60, 1]),
  waist_circumference: during('cm', [60, 120, 1]),
  water: at('ml', [50, 500]),
  wheelchair_push: during('count', [0, 100]),
  workout_distance: during('m', [0, 900, 1]),
  workout_duration: during('min', [1, 5], { intensity: ['low', 'medium', 'high'] }),
  workout_swimming_stroke: during('count', [1, 60]),
};

/** Names in event types, where they are others than in addresses. */
export const EVENT_NAMES: Readonly<Record<string, string>> = { body_fat: 'fat', body_weight: 'weight' };

/** What is asked for: bounds are inclusive, milliseconds since the epoch. */
export interface SeriesQuery {
  readonly user: Subject;
  readonly startMs: number;
  readonly endMs: number;
  readonly provider?: string | undefined;
  /** Only samples at or after this place. */
  readonly from?: number | undefined;
  /** With the corrections that were made by now. */
  readonly corrected: boolean;
}

export interface Sample {
  /** Its number in the whole history of the user. */
  readonly place: number;
  readonly provider: string;
  readonly json: Json;
}

/** Samples in order of time. The providers of the user take turns. */
export function* madeUpSeries(plan: HealthPlan, resource: string, query: SeriesQuery): Generator<Sample> {
  const { user, startMs, endMs, provider: only, from = 0 } = query;
  const { samplesPerDay, sinceMs, days } = plan;
  const step = DAY_MS / samplesPerDay;
  const first = Math.max(from, Math.ceil((startMs - sinceMs) / step));
  const last = Math.min(days * samplesPerDay - 1, Math.floor((endMs - sinceMs) / step));
  for (let place = first; place <= last; place += 1) {
    const provider = user.sources[place % user.sources.length];
    if (provider === undefined || (only !== undefined && only !== provider)) continue;
    const ms = sinceMs + Math.floor((place * step) / 1000) * 1000;
    if (ms < startMs) continue;
    yield { place, provider, json: sampleOf(plan, resource, user, place, ms, query.corrected) };
  }
}

function sampleOf(
  { seed }: HealthPlan,
  resource: string,
  user: Subject,
  place: number,
  ms: number,
  corrected: boolean,
): Json {
  const { unit, seconds, values } = SERIES[resource] ?? at('', null);
  const names = [seed, resource, user.id, place];
  const isAnother = corrected && isCorrected(...names);
  const random = randomOf(...names, ...(isAnother ? ['corrected'] : []));
  const span = seconds === 0 ? {} : { start: stamp(ms), end: stamp(ms + seconds * 1000) };
  return {
    timezone_offset: offsetOf(user),
    unit,
    timestamp: stamp(ms),
    ...span,
    ...makeAll(random, values),
  };
}

/** Samples by provider, as pages of a series and data of events have them. */
export function groupsOf(user: Subject, samples: readonly Sample[]): Map<string, Json> {
  const byProvider = Map.groupBy(samples, ({ provider }) => provider);
  return new Map(
    [...byProvider].map(([provider, all]) => [
      provider,
      { source: sourceOf(user, provider), data: all.map(({ json }) => json) },
    ]),
  );
}
