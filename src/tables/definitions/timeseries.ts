import { decimal, integer, json, text, timestamp } from '../definition.ts';
import { SOURCE } from './common.ts';
import { inherited, rowsIn, table } from './table.ts';

/** The data of an event of samples: a source, and the samples. */
export const SAMPLES = table({
  name: 'timeseries',
  description: 'Data of an event of samples',
  key: [],
  // Also types that are not known yet: when their data is a list of samples, they have a table.
  events: ['daily.data.'],
  ownRows: false,
  columns: SOURCE,
  nested: [
    rowsIn('data', {
      name: 'timeseries',
      description:
        'Samples of all kinds, one a row: heart rate, glucose, steps. Every `daily.data.…` event whose data has a list of samples has its rows here.',
      key: [
        'user_id',
        'resource',
        'timestamp',
        'start_time',
        'end_time',
        'type',
        'sample_id',
        'source_provider',
        'source_slug',
        'source_type',
        'source_app',
        'source_device',
        'source_workout_id',
        'sensor_location',
        'intensity',
        'delivery_mode',
        'repetition',
      ],
      identity: [['user_id'], ['resource'], ['timestamp', 'start_time']],
      columns: [
        text('resource', 'what was measured, from the event type: heartrate, steps; open list', {
          from: { envelope: 'resource' },
        }),
        timestamp('timestamp', 'time of the sample'),
        timestamp('start_time', 'when it began', { from: 'start' }),
        timestamp('end_time', 'when it ended', { from: 'end' }),
        integer('timezone_offset', 'offset from UTC where it was measured', { unit: 's' }),
        decimal('value', 'the value, when it is a number', { unit: 'as `unit` says' }),
        text('value_text', 'the value, when it is a text: notes', { from: 'value' }),
        decimal('systolic', 'blood pressure, systolic'),
        decimal('diastolic', 'blood pressure, diastolic'),
        text('unit', 'unit of the value, open list'),
        text('type', 'kind of sample inside the resource, open list'),
        integer('sample_id', 'identifier', { from: 'id' }),
        text('sensor_location', 'where on the body, open list'),
        text('intensity', 'low, medium, high; open list'),
        text('delivery_mode', 'of insulin: basal, bolus; open list'),
        text('delivery_form', 'of insulin: standard, extended; open list'),
        text('bolus_purpose', 'of insulin: meal, correction; open list'),
        json('tags', 'of a note: array of texts'),
        json('sample_grouping', 'what the sample belongs to, as it came', { from: 'grouping' }),
        integer('repetition', 'samples before it in the same event that only their values tell apart', {
          from: { of: 'repetition' },
        }),
        ...SOURCE.map(inherited),
        json(
          'batch_extra',
          'What has no column in the data around the sample: unknown fields, invalid values',
          {
            from: { parent: 'extra' },
          },
        ),
      ],
    }),
  ],
});
