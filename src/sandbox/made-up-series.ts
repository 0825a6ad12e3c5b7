import { DAY_MS, makeNamed, shapeOf, sourceOf, stamp, zoneOf } from './made-up-health.ts';
import type { HealthPlan, Json, Range, Shape, Subject } from './made-up-health.ts';

interface Series {
  /** Whether samples have a start and an end. */
  readonly isSpan: boolean;
  readonly shape: Shape;
}

/** Series by their names in addresses. */
export const SERIES: Readonly<Record<string, Series>> = {
  ...seriesIn(
    true,
    `afib_burden: unit %; value 0..5.5
     basal_body_temperature body_temperature body_temperature_delta: unit °C; value -1..38.05; sensor_location ear|finger
     body_mass_index uv_exposure: unit index; value 1..35.5
     caffeine carbohydrates: unit g; value 0..90.5
     calories_active: unit kcal; value 0..200.5
     daylight_exposure mindfulness_minutes stand_duration: unit min; value 0..5
     distance workout_distance: unit m; value 0..900.5
     fall handwashing inhaler_usage sleep_apnea_alert: unit count; value 1
     forced_expiratory_volume_1 forced_vital_capacity: unit L; value 2..6.05
     heart_rate_alert: type low_heart_rate|high_heart_rate|irregular_rhythm; unit count; value 1
     heart_rate_recovery_one_minute steps wheelchair_push workout_swimming_stroke: unit count; value 0..600
     hypnogram: unit stage; value 1..4
     insulin_injection: type rapid_acting|long_acting; unit unit; value 1..20.5; delivery_mode basal|bolus; delivery_form standard|extended; bolus_purpose meal|mixed
     lean_body_mass: unit kg; value 40..80.5
     note: unit text; value made up|another made-up note; tags ["food"]
     peak_expiratory_flow_rate: unit L/min; value 300..700
     sleep_breathing_disturbance: type elevated|not_elevated; unit count; value 0..9
     stand_hour: type stood|idle; unit count; value 1
     vo2_max: unit mL/kg/min; value 25..60.5
     waist_circumference: unit cm; value 60..120.5
     workout_duration: unit min; value 1..5; intensity low|medium|high`,
  ),
  ...seriesIn(
    false,
    `blood_oxygen body_fat stress_level: unit %; value 8..100
     blood_pressure: unit mmHg; systolic 100..150; diastolic 60..95; grouping []
     body_weight: unit kg; value 50..110.5
     calories_basal: unit kcal; value 50..90.5
     cholesterol: type total|hdl|ldl|triglycerides; unit mmol/L; value 2..7.5
     electrocardiogram_voltage: type lead_1|lead_2; unit mV; value -1..1.005
     floors_climbed: unit count; value 0..5
     glucose: type automatic|manual_scan; unit mmol/L; value 3.5..11.5
     heartrate respiratory_rate: unit bpm; value 12..180
     hrv: unit rmssd; value 20..120.5
     ige igg: type made-up food; unit g/L; value 0..100.5
     water: unit ml; value 50..500`,
  ),
};

function seriesIn(isSpan: boolean, text: string): Readonly<Record<string, Series>> {
  const lines = text.split('\n').map((line) => line.trim().split(': '));
  return Object.fromEntries(
    lines.flatMap(([names = '', shape = '']) => {
      return names.split(' ').map((name) => [name, { isSpan, shape: shapeOf(shape) }] as const);
    }),
  );
}

/** Names in event types and in the status of pulls, where they are others than in addresses. */
export const EVENT_NAMES: Readonly<Record<string, string>> = { body_fat: 'fat', body_weight: 'weight' };

export interface Sample {
  /** Its number in the whole series of the user. */
  readonly place: number;
  readonly provider: string;
  readonly json: Json;
}

/**
 * Samples in order of time. The providers of the user take turns.
 * @param from the first place
 * @param corrected with the corrections that are made later
 */
export function* madeUpSeries(
  { seed, samplesPerDay, sinceMs, days }: HealthPlan,
  resource: string,
  user: Subject,
  { startMs, endMs, provider: only }: Range,
  from: number,
  corrected: boolean,
): Generator<Sample> {
  const series = SERIES[resource];
  if (series === undefined) return;
  const stepMs = DAY_MS / samplesPerDay;
  const last = Math.min(days * samplesPerDay - 1, Math.floor((endMs - sinceMs) / stepMs));
  for (let place = Math.max(from, Math.ceil((startMs - sinceMs) / stepMs)); place <= last; place += 1) {
    const provider = user.sources[place % user.sources.length];
    if (provider === undefined || (only ?? provider) !== provider) continue;
    const ms = sinceMs + Math.floor((place * stepMs) / 1000) * 1000;
    if (ms < startMs) continue;
    const { values } = makeNamed(series.shape, [seed, resource, user.id, place], corrected);
    const span = series.isSpan ? { start: stamp(ms), end: stamp(ms + SPAN_MS) } : {};
    const { timezone_offset } = zoneOf(user);
    yield { place, provider, json: { id: place, timezone_offset, timestamp: stamp(ms), ...span, ...values } };
  }
}

const SPAN_MS = 300_000;

/** Samples by provider: a group is a source with its samples, as in pages of a series and in events. */
export function groupsOf(user: Subject, samples: readonly Sample[]): Map<string, Json> {
  const groups = [...Map.groupBy(samples, ({ provider }) => provider)];
  return new Map(
    groups.map(([provider, all]) => {
      return [provider, { source: sourceOf(user, provider), data: all.map(({ json }) => json) }];
    }),
  );
}
