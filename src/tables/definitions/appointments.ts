import { boolean, decimal, json, text, timestamp } from '../definition.ts';
import { ADDRESS, CREATED_AT, ID, INTERPRETATION, PROVIDER_ID, TEAM, UPDATED_AT, USER } from './common.ts';
import { inside, position, rowsIn, table } from './table.ts';

export const APPOINTMENTS = table({
  name: 'appointments',
  description: 'Appointments for a blood draw, one a row.',
  key: ['id'],
  events: ['labtest.appointment.'],
  columns: [
    text('id', 'identifier', { required: true }),
    USER,
    text('order_id', 'the order, UUID'),
    text('order_transaction_id', 'transaction of orders, UUID'),
    text('type', 'phlebotomy, patient_service_center; open list'),
    text('provider', 'who draws the blood, open list'),
    PROVIDER_ID,
    text('external_id', 'another identifier'),
    text('status', 'confirmed, pending, reserved, in_progress, completed, cancelled; open list'),
    text('event_status', 'status of the last event, open list'),
    json('event_data', 'what belongs to the last event, as it came'),
    timestamp('start_at', 'start'),
    timestamp('end_at', 'end'),
    text('iana_timezone', 'IANA name of the time zone'),
    boolean('can_reschedule', 'another time can be chosen'),
    text('appointment_notes', 'notes'),
    ...inside('address', [...ADDRESS, text('unit', 'unit'), text('access_notes', 'how to get in')]),
    ...inside('location', [
      decimal('lng', 'longitude', { unit: '°' }),
      decimal('lat', 'latitude', { unit: '°' }),
    ]),
  ],
  nested: [
    rowsIn('events', {
      name: 'appointment_events',
      description: 'What has happened to the appointments, one a row.',
      key: ['appointment_id', 'event_index'],
      columns: [
        text('appointment_id', 'the appointment', { from: { parent: 'id' }, required: true }),
        position('event_index'),
        timestamp('created_at', 'when it happened'),
        text('status', 'pending, reserved, scheduled, completed, cancelled, in_progress; open list'),
        json('data', 'what belongs to it, as it came'),
      ],
    }),
  ],
});

export const MATCH_REVIEWS = table({
  name: 'match_reviews',
  description: 'Reviews of results that had to be matched to an order, one a row.',
  key: ['id'],
  events: ['labtest.match_review.'],
  columns: [
    ID,
    text('status', 'matched, pending_customer_review, pending_ops_review, resolved; open list'),
    text('decision_code', 'why, open list'),
    json('sub_reason_codes', 'array of texts, open list'),
    text('resolution_action', 'accept, reject, unsure; open list'),
    text('resolved_user_id', 'user that the result was given to, UUID'),
    text('resolved_order_id', 'order that the result was given to, UUID'),
  ],
});

export const LAB_RESULTS = table({
  name: 'lab_results',
  description: 'Notices of lab results, such as critical ones, one result a row.',
  key: ['order_id', 'sample_id'],
  newest: 'updated_at',
  events: ['labtest.result.'],
  columns: [
    text('order_id', 'the order, UUID', { required: true }),
    text('sample_id', 'the sample'),
    USER,
    TEAM,
    text('status', 'status of the result, open list'),
    INTERPRETATION,
    CREATED_AT,
    UPDATED_AT,
  ],
});
