import type { JournalEvent } from '../../src/core/event.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';

const HOUR = 3_600_000;
const FIRST = Date.UTC(2026, 10, 1);
const USERS = 40;
const DOCUMENTS = 60;

/** Resources whose data is a list of samples; each comes as `created` and `updated`. */
const SAMPLED = (
  'heartrate hrv glucose steps weight fat water blood_oxygen respiratory_rate stress_level caffeine carbohydrates ' +
  'mindfulness_minutes vo2_max cholesterol ige igg body_temperature body_temperature_delta distance workout_distance ' +
  'daylight_exposure stand_duration forced_expiratory_volume_1 forced_vital_capacity body_mass_index uv_exposure ' +
  'calories_active calories_basal floors_climbed afib_burden heart_rate_alert workout_duration insulin_injection ' +
  'stand_hour sleep_breathing_disturbance peak_expiratory_flow_rate basal_body_temperature lean_body_mass ' +
  'waist_circumference fall handwashing inhaler_usage wheelchair_push sleep_apnea_alert'
).split(' ');

/** Resources that are one document with an id and versions, the table they become, and a number they carry. */
export const VERSIONED = [
  {
    resource: 'meal',
    table: 'meals',
    column: 'energy_value',
    number: (n: number) => ({ energy: { unit: 'kcal', value: n } }),
  },
  { resource: 'sleep', table: 'sleep', column: 'efficiency', number: (n: number) => ({ efficiency: n }) },
  { resource: 'workouts', table: 'workouts', column: 'calories', number: (n: number) => ({ calories: n }) },
  { resource: 'body', table: 'body', column: 'weight', number: (n: number) => ({ weight: n }) },
  { resource: 'activity', table: 'activity', column: 'distance', number: (n: number) => ({ distance: n }) },
] as const;

export interface Sample {
  readonly timestamp: string;
  readonly unit: string;
  readonly value: number;
}

/** One event as it was made, before it is any bytes. */
export interface MadeEvent {
  readonly id: string;
  readonly type: string;
  readonly resource: string;
  readonly user: string;
  readonly received: number;
  readonly samples?: readonly Sample[];
  /** Of a document: which one, its own time, and its number. */
  readonly version?: { readonly document: string; readonly updated: string; readonly number: number };
}

/** Numbers that a double holds exactly, also in sums of a million. */
const half = (n: number): number => (n % 4001) / 2;

/** Mulberry32: the same seed gives the same events. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const KINDS = [...SAMPLED, ...VERSIONED.map(({ resource }) => resource)];

/** All the event types, 100 of them. */
export const TYPES = KINDS.flatMap((kind) =>
  ['created', 'updated'].map((what) => `daily.data.${kind}.${what}`),
);

/** @param from number of the first; every event has a number of its own */
export function makeEvents(from: number, count: number, draw: () => number): MadeEvent[] {
  return Array.from({ length: count }, (_, at): MadeEvent => {
    const n = from + at;
    const type = TYPES[n % TYPES.length] as string;
    const resource = type.split('.')[2] as string;
    const user = `user-${Math.floor(draw() * USERS)}`;
    // Received over three days, and not in the order in which they are numbered.
    const received = FIRST + Math.floor(draw() * 72) * HOUR + n;
    const event = { id: `event-${n}`, type, resource, user, received };
    if (SAMPLED.includes(resource)) {
      const samples = Array.from({ length: Math.floor(draw() * 9) }, (__, nth) => ({
        // Few moments, so that later events correct the samples of earlier ones.
        timestamp: new Date(FIRST + (Math.floor(draw() * 200) * 16 + nth) * 60_000).toISOString(),
        unit: 'made up',
        value: half(n * 31 + nth * 7),
      }));
      return { ...event, samples };
    }
    const document = Math.floor(draw() * DOCUMENTS);
    return {
      ...event,
      user: `user-${document % USERS}`,
      version: {
        document: `${resource}-${document}`,
        // Coarse, so that two versions often have the same time, and late ones an earlier one.
        updated: new Date(FIRST + Math.floor(draw() * 12) * 6 * HOUR).toISOString(),
        number: half(n),
      },
    };
  });
}

export function eventOf(made: MadeEvent, place: number): JournalEvent {
  const { id, type, resource, user, received, samples, version } = made;
  const source = { provider: 'made_up', type: 'app' };
  const number = VERSIONED.find((one) => one.resource === resource)?.number;
  const data =
    version === undefined
      ? { source, data: samples }
      : {
          id: version.document,
          user_id: user,
          updated_at: version.updated,
          source,
          ...number?.(version.number),
        };
  const body = { event_type: type, data, team_id: 'team-1', user_id: user, client_user_id: `own-${user}` };
  return contractEvent(place, {
    id,
    type,
    user,
    clientUser: `own-${user}`,
    receivedAt: received,
    body: Buffer.from(JSON.stringify(body)),
  });
}
