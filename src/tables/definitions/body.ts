import { boolean, date, decimal, integer, json, text, timestamp } from '../definition.ts';
import { BESIDE_SOURCE, daily, DAY, SESSION, SOURCE, TIME_ZONE, TIMES, TIMEZONE_OFFSET } from './common.ts';

export const BODY = daily({
  name: 'body',
  description: 'Body measurements, one measurement a row.',
  columns: [
    ...DAY,
    decimal('weight', 'weight', { unit: 'kg' }),
    decimal('fat', 'share of fat', { unit: '%' }),
    decimal('water_percentage', 'share of water', { unit: '%' }),
    decimal('muscle_mass_percentage', 'share of muscles', { unit: '%' }),
    decimal('visceral_fat_index', 'visceral fat, an index'),
    decimal('bone_mass_percentage', 'share of bones', { unit: '%' }),
    decimal('body_mass_index', 'body mass index'),
    decimal('lean_body_mass_kilogram', 'weight without fat', { unit: 'kg' }),
    decimal('waist_circumference_centimeter', 'waist', { unit: 'cm' }),
    ...TIMES,
    ...SOURCE,
  ],
});

export const PROFILES = daily({
  name: 'profiles',
  resource: 'profile',
  description: 'What a provider knows of a user, one a row.',
  columns: [
    integer('height', 'height', { unit: 'cm' }),
    date('birth_date', 'date of birth'),
    boolean('wheelchair_use', 'the user uses a wheelchair'),
    text('gender', 'female, male, other, unknown; open list'),
    text('sex', 'female, male, other; open list'),
    ...TIMES,
    ...SOURCE,
  ],
});

export const MENSTRUAL_CYCLES = daily({
  name: 'menstrual_cycles',
  resource: 'menstrual_cycle',
  description:
    'Menstrual cycles, one a row. What was noted on single days is in arrays of objects with a `date`.',
  columns: [
    date('period_start', 'first day of the period'),
    date('period_end', 'last day of the period'),
    date('cycle_end', 'last day of the cycle'),
    boolean('is_predicted', 'foretold, not observed'),
    json('menstrual_flow', 'array of {date, flow}'),
    json('cervical_mucus', 'array of {date, quality}'),
    json('intermenstrual_bleeding', 'array of {date}'),
    json('contraceptive', 'array of {date, type}'),
    json('detected_deviations', 'array of {date, deviation}'),
    json('ovulation_test', 'array of {date, test_result}'),
    json('home_pregnancy_test', 'array of {date, test_result}'),
    json('home_progesterone_test', 'array of {date, test_result}'),
    json('sexual_activity', 'array of {date, protection_used}'),
    json('basal_body_temperature', 'array of {date, value}'),
    ...TIMES,
    ...SOURCE,
    ...BESIDE_SOURCE,
  ],
});

export const ELECTROCARDIOGRAMS = daily({
  name: 'electrocardiograms',
  resource: 'electrocardiogram',
  description: 'Electrocardiograms, one a row. Their voltages are in `timeseries`.',
  columns: [
    ...SESSION,
    integer('voltage_sample_count', 'number of samples'),
    integer('heart_rate_mean', 'heart rate, mean', { unit: 'bpm' }),
    decimal('sampling_frequency_hz', 'samples a second', { unit: 'Hz' }),
    text('classification', 'sinus_rhythm, atrial_fibrillation, inconclusive; open list'),
    text('inconclusive_cause', 'why it is inconclusive, open list'),
    text('algorithm_version', 'version of the algorithm'),
    TIME_ZONE,
    ...TIMES,
    ...SOURCE,
    ...BESIDE_SOURCE,
    text('source_device_model', 'model of the device, beside the source'),
  ],
});

export const SLEEP = daily({
  name: 'sleep',
  description: 'Sleep summaries, one sleep a row. Times of the phases are in seconds.',
  columns: [
    ...DAY,
    timestamp('bedtime_start', 'into bed'),
    timestamp('bedtime_stop', 'out of bed'),
    text('type', 'long_sleep, short_sleep, acknowledged_nap, unknown; open list'),
    text('state', 'tentative, confirmed; open list'),
    TIMEZONE_OFFSET,
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
    ...SESSION,
    json('stage_start_offset_second', 'array: start of each phase, seconds from the start'),
    json('stage_end_offset_second', 'array: end of each phase, seconds from the start'),
    json('stage_type', 'array: kind of each phase, a number; open list'),
    TIME_ZONE,
    ...TIMES,
    ...SOURCE,
    ...BESIDE_SOURCE,
  ],
});
