import {
  boolean,
  decimal,
  type EventOrigin,
  integer,
  json,
  text,
  timestamp,
  type TableDefinition,
} from '../definition.ts';

const EVENTS: EventOrigin = { types: ['labtest.appointment.'], member: 'data' };

const APPOINTMENT_EVENTS: TableDefinition = {
  name: 'appointment_events',
  description: 'What has happened to the appointments, one a row.',
  key: ['appointment_id', 'event_index'],
  events: EVENTS,
  columns: [
    text('appointment_id', 'the appointment', { from: { parent: 'id' }, required: true }),
    integer('event_index', 'position, from 0', { from: { of: 'position' }, required: true }),
    timestamp('created_at', 'when it happened'),
    text('status', 'pending, reserved, scheduled, completed, cancelled, in_progress; open list'),
    json('data', 'what belongs to it, as it came'),
  ],
};

export const APPOINTMENTS: TableDefinition = {
  name: 'appointments',
  description: 'Appointments for a blood draw, one a row.',
  key: ['id'],
  events: EVENTS,
  columns: [
    text('id', 'identifier', { required: true }),
    text('user_id', 'user, UUID'),
    text('order_id', 'the order, UUID'),
    text('order_transaction_id', 'transaction of orders, UUID'),
    text('type', 'phlebotomy, patient_service_center; open list'),
    text('provider', 'who draws the blood, open list'),
    text('provider_id', 'identifier at the provider'),
    text('external_id', 'another identifier'),
    text('status', 'confirmed, pending, reserved, in_progress, completed, cancelled; open list'),
    text('event_status', 'status of the last event, open list'),
    json('event_data', 'what belongs to the last event, as it came'),
    timestamp('start_at', 'start'),
    timestamp('end_at', 'end'),
    text('iana_timezone', 'IANA name of the time zone'),
    boolean('can_reschedule', 'another time can be chosen'),
    text('appointment_notes', 'notes'),
    text('address_first_line', 'address, first line', { from: 'address.first_line' }),
    text('address_second_line', 'address, second line', { from: 'address.second_line' }),
    text('address_city', 'city', { from: 'address.city' }),
    text('address_state', 'state', { from: 'address.state' }),
    text('address_zip_code', 'zip code', { from: 'address.zip_code' }),
    text('address_unit', 'unit', { from: 'address.unit' }),
    text('address_access_notes', 'how to get in', { from: 'address.access_notes' }),
    decimal('location_lng', 'longitude', { from: 'location.lng', unit: '°' }),
    decimal('location_lat', 'latitude', { from: 'location.lat', unit: '°' }),
  ],
  nested: [{ at: 'events', each: 'array', table: APPOINTMENT_EVENTS }],
};

export const MATCH_REVIEWS: TableDefinition = {
  name: 'match_reviews',
  description: 'Reviews of results that had to be matched to an order, one a row.',
  key: ['id'],
  events: { types: ['labtest.match_review.'], member: 'data' },
  columns: [
    text('id', 'identifier, UUID', { required: true }),
    text('status', 'matched, pending_customer_review, pending_ops_review, resolved; open list'),
    text('decision_code', 'why, open list'),
    json('sub_reason_codes', 'array of texts, open list'),
    text('resolution_action', 'accept, reject, unsure; open list'),
    text('resolved_user_id', 'user that the result was given to, UUID'),
    text('resolved_order_id', 'order that the result was given to, UUID'),
  ],
};

export const LAB_RESULTS: TableDefinition = {
  name: 'lab_results',
  description: 'Notices of lab results, such as critical ones, one result a row.',
  key: ['order_id', 'sample_id'],
  newest: 'updated_at',
  events: { types: ['labtest.result.'], member: 'data' },
  columns: [
    text('order_id', 'the order, UUID', { required: true }),
    text('sample_id', 'the sample'),
    text('user_id', 'user, UUID'),
    text('team_id', 'team, UUID'),
    text('status', 'status of the result, open list'),
    text('interpretation', 'normal, abnormal, critical; open list'),
    timestamp('created_at', 'creation'),
    timestamp('updated_at', 'the newest version wins'),
  ],
};
