import { boolean, decimal, integer, json, text, timestamp } from '../definition.ts';
import {
  CALENDAR_DATE,
  daily,
  DAY,
  PROVIDER_ID,
  SOURCE,
  TIME_ZONE,
  TIMES,
  TIMEZONE_OFFSET,
  USER,
} from './common.ts';
import { inside, table } from './table.ts';

export const ACTIVITY = daily({
  name: 'activity',
  description: 'Activity summaries, one day of a source a row.',
  columns: [
    ...DAY,
    decimal('calories_total', 'energy', { unit: 'kcal' }),
    decimal('calories_active', 'energy of activity', { unit: 'kcal' }),
    integer('steps', 'steps'),
    decimal('daily_movement', 'distance that the movement equals', { unit: 'm' }),
    decimal('distance', 'distance', { unit: 'm' }),
    decimal('low', 'time of low intensity', { unit: 'min' }),
    decimal('medium', 'time of medium intensity', { unit: 'min' }),
    decimal('high', 'time of high intensity', { unit: 'min' }),
    integer('floors_climbed', 'floors'),
    TIME_ZONE,
    TIMEZONE_OFFSET,
    ...inside('heart_rate', [
      decimal('avg_bpm', 'heart rate, average', { unit: 'bpm' }),
      decimal('min_bpm', 'heart rate, least', { unit: 'bpm' }),
      decimal('max_bpm', 'heart rate, greatest', { unit: 'bpm' }),
      decimal('resting_bpm', 'heart rate at rest', { unit: 'bpm' }),
      decimal('avg_walking_bpm', 'heart rate when walking, average', { unit: 'bpm' }),
    ]),
    boolean('wheelchair_use', 'the user uses a wheelchair'),
    integer('wheelchair_push', 'pushes of the wheelchair'),
    ...TIMES,
    ...SOURCE,
  ],
});

const SPORT = inside('sport', [
  integer('id', 'sport, identifier'),
  text('name', 'sport, name'),
  text('slug', 'sport, short name'),
]);

export const WORKOUTS = daily({
  name: 'workouts',
  description: 'Workouts, one a row.',
  columns: [
    text('title', 'title'),
    CALENDAR_DATE,
    timestamp('time_start', 'start'),
    timestamp('time_end', 'end'),
    TIMEZONE_OFFSET,
    ...SPORT,
    integer('average_hr', 'heart rate, average', { unit: 'bpm' }),
    integer('max_hr', 'heart rate, greatest', { unit: 'bpm' }),
    json('hr_zones', 'array: seconds in each zone of the heart rate'),
    decimal('distance', 'distance', { unit: 'm' }),
    decimal('calories', 'energy', { unit: 'kcal' }),
    integer('moving_time', 'time in movement', { unit: 's' }),
    decimal('total_elevation_gain', 'climb', { unit: 'm' }),
    decimal('elev_high', 'highest point', { unit: 'm' }),
    decimal('elev_low', 'lowest point', { unit: 'm' }),
    decimal('average_speed', 'speed, average', { unit: 'm/s' }),
    decimal('max_speed', 'speed, greatest', { unit: 'm/s' }),
    decimal('average_watts', 'power, average', { unit: 'W' }),
    decimal('device_watts', 'power that the device measured', { unit: 'W' }),
    decimal('max_watts', 'power, greatest', { unit: 'W' }),
    decimal('weighted_average_watts', 'power, weighted average', { unit: 'W' }),
    integer('steps', 'steps'),
    ...inside('map', [
      text('polyline', 'the way, an encoded polyline'),
      text('summary_polyline', 'the way with fewer points'),
    ]),
    PROVIDER_ID,
    ...TIMES,
    ...SOURCE,
  ],
});

export const WORKOUT_STREAMS = table({
  name: 'workout_streams',
  description: 'Notices that the detailed data of a workout is there, one workout a row.',
  key: ['workout_id'],
  events: ['daily.data.workout_stream.'],
  columns: [
    text('workout_id', 'the workout, UUID', { required: true }),
    USER,
    PROVIDER_ID,
    text('message', 'what the service says of it'),
    ...SPORT,
    ...SOURCE,
  ],
});
