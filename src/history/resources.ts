import { nearest } from '../lib/nearest.ts';
import type { PathName } from './service/paths.ts';

/** Data of users that the service answers by user and range. */
export interface HistoryResource {
  /** As in event types (`daily.data.sleep.created`) and in the service's list of pulls. */
  readonly name: string;
  /** Path with `{user_id}`, or the operation in `service.paths` that has it. */
  readonly path: PathName | `/${string}`;
  /** Member of the answer that has the list; `groups` has lists of groups of samples; without a name the answer is the only item. */
  readonly list: string;
  readonly table: string;
  readonly pages: 'none' | 'cursor';
  readonly range: 'days' | 'none';
}

/** Name, list and table; the list has the name of the resource unless it is given. */
const SUMMARIES: readonly (readonly [name: string, table: string, list?: string])[] = [
  ['activity', 'activity'],
  ['body', 'body'],
  ['electrocardiogram', 'electrocardiograms'],
  ['menstrual_cycle', 'menstrual_cycles'],
  ['profile', 'profiles', ''],
  ['sleep', 'sleep'],
  ['sleep_cycle', 'sleep_cycles'],
  ['workouts', 'workouts'],
];

/** Series of samples, by the names that their events have. */
const SERIES =
  'afib_burden basal_body_temperature blood_oxygen blood_pressure body_mass_index body_temperature ' +
  'body_temperature_delta caffeine calories_active calories_basal carbohydrates cholesterol daylight_exposure distance ' +
  'electrocardiogram_voltage fall fat floors_climbed forced_expiratory_volume_1 forced_vital_capacity glucose handwashing ' +
  'heart_rate_alert heart_rate_recovery_one_minute heartrate hrv hypnogram ige igg inhaler_usage insulin_injection ' +
  'lean_body_mass mindfulness_minutes note peak_expiratory_flow_rate respiratory_rate sleep_apnea_alert ' +
  'sleep_breathing_disturbance stand_duration stand_hour steps stress_level uv_exposure vo2_max waist_circumference water ' +
  'weight wheelchair_push workout_distance workout_duration workout_swimming_stroke';

/** Series whose paths have another name than their events. */
const NAMES_IN_PATHS: Readonly<Record<string, string>> = { fat: 'body_fat', weight: 'body_weight' };

/** The list of a series: an object of lists of groups, each a source and its samples. */
export const GROUPS = 'groups';

function summary(name: string, table: string, list = name): HistoryResource {
  return {
    name,
    path: `/v2/summary/${name}/{user_id}`,
    list,
    table,
    pages: 'none',
    range: list === '' ? 'none' : 'days',
  };
}

function series(name: string): HistoryResource {
  const path = `/v2/timeseries/{user_id}/${NAMES_IN_PATHS[name] ?? name}/grouped` as const;
  return { name, path, list: GROUPS, table: 'timeseries', pages: 'cursor', range: 'days' };
}

/** Its path is a key of its own, `service.paths.mealSummary`. */
export const MEAL: HistoryResource = { ...summary('meal', 'meals', 'meals'), path: 'mealSummary' };

export type Resources = ReadonlyMap<string, HistoryResource>;

/** The resources that the program knows without a config, by name. */
export const RESOURCES: Resources = new Map(
  [MEAL, ...SUMMARIES.map((one) => summary(...one)), ...SERIES.split(' ').map(series)].map((one) => [
    one.name,
    one,
  ]),
);

/** Tables of items inside the documents of a table. */
const NESTED: Readonly<Record<string, readonly string[]>> = { meals: ['meal_items'] };

/** The tables that the documents of a resource are shaped into; the first is that of the documents. */
export function tablesOf({ table }: Pick<HistoryResource, 'table'>): readonly string[] {
  return [table, ...(NESTED[table] ?? [])];
}

/** Of `RESOURCE_FIELDS`: what a config says of each. */
type WrittenResources = Readonly<Record<string, Partial<Record<keyof HistoryResource, string | undefined>>>>;

/** The built-in resources with those of a config, which are valid. */
export function resourcesWith(written: WrittenResources): Resources {
  const all = new Map(RESOURCES);
  for (const [name, one] of Object.entries(written)) {
    const before = all.get(name) ?? { name, path: '/', list: name, table: '', pages: 'none', range: 'days' };
    const said = Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined));
    all.set(name, { ...before, ...said });
  }
  return all;
}

/**
 * The resources of these names, sorted, each once; `all` names every one.
 * @throws RangeError for an unknown name, with the nearest known one
 */
export function chooseResources(names: readonly string[], known: Resources): HistoryResource[] {
  const chosen = new Map<string, HistoryResource>();
  for (const name of names.includes('all') ? known.keys() : names) {
    const one = known.get(name);
    if (one === undefined) {
      const close =
        nearest(name, [...known.keys()]) ?? [...known.keys()].find((other) => name.includes(other));
      throw new RangeError(
        `there is no resource ${name}${close === undefined ? '' : `; did you mean ${close}?`}`,
      );
    }
    chosen.set(name, one);
  }
  return [...chosen.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
