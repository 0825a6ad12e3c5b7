import { date, decimal, integer, json, text, timestamp } from '../definition.ts';
import { daily, TIMES } from './common.ts';
import { BESIDE_SOURCE, SOURCE } from './source.ts';

export const SLEEP = daily({
  name: 'sleep',
  description: 'Sleep summaries, one sleep a row. Times of the phases are in seconds.',
  columns: [
    timestamp('date', 'the day, as a time'),
    date('calendar_date', 'the day'),
    timestamp('bedtime_start', 'into bed'),
    timestamp('bedtime_stop', 'out of bed'),
    text('type', 'long_sleep, short_sleep, acknowledged_nap, unknown; open list'),
    text('state', 'tentative, confirmed; open list'),
    integer('timezone_offset', 'offset from UTC', { unit: 's' }),
    integer('duration', 'time in bed', { unit: 's' }),
    integer('total', 'time asleep', { unit: 's' }),
    integer('awake', 'time awake', { unit: 's' }),
    integer('light', 'light sleep', { unit: 's' }),
    integer('rem', 'REM sleep', { unit: 's' }),
    integer('deep', 'deep sleep', { unit: 's' }),
    integer('score', 'score of the sleep'),
    integer('recovery_readiness_score', 'score of the recovery'),
    integer('hr_lowest', 'heart rate, least', { unit: 'bpm' }),
    integer('hr_average', 'heart rate, average', { unit: 'bpm' }),
    integer('hr_resting', 'heart rate at rest', { unit: 'bpm' }),
    decimal('hr_dip', 'dip of the heart rate'),
    decimal('average_hrv', 'heart rate variability, average', { unit: 'ms' }),
    decimal('respiratory_rate', 'breaths', { unit: '1/min' }),
    decimal('efficiency', 'share of the time in bed that was slept'),
    integer('latency', 'time until asleep', { unit: 's' }),
    decimal('temperature_delta', 'difference from the usual body temperature', { unit: '°C' }),
    decimal('skin_temperature', 'skin temperature', { unit: '°C' }),
    json('sleep_stream', 'samples of the sleep, as they came: hrv, heartrate, hypnogram …'),
    ...TIMES,
    ...SOURCE,
  ],
});

export const SLEEP_CYCLES = daily({
  name: 'sleep_cycles',
  resource: 'sleep_cycle',
  description: 'Phases of the sleep, one sleep a row, its phases in arrays of the same length.',
  columns: [
    text('sleep_id', 'the row in `sleep`, UUID'),
    timestamp('session_start', 'start'),
    timestamp('session_end', 'end'),
    json('stage_start_offset_second', 'array: start of each phase, seconds from the start'),
    json('stage_end_offset_second', 'array: end of each phase, seconds from the start'),
    json('stage_type', 'array: kind of each phase, a number; open list'),
    text('time_zone', 'IANA name of the time zone'),
    ...TIMES,
    ...SOURCE,
    ...BESIDE_SOURCE,
  ],
});
