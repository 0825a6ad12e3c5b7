import { boolean, date, integer, json, text, timestamp } from '../definition.ts';
import { CREATED_AT, ID, INTERPRETATION, TEAM, UPDATED_AT, USER } from './common.ts';
import { LAB_TEST } from './lab-tests.ts';
import { inherited, inside, position, rowsIn, table } from './table.ts';

export const ORDERS = table({
  name: 'orders',
  description: 'Lab orders, one a row. The statuses that each has passed are in `order_events`.',
  key: ['id'],
  newest: 'updated_at',
  events: ['labtest.order.'],
  // What the service answers when it has taken an order.
  framed: 'order',
  columns: [
    ID,
    TEAM,
    USER,
    text('status', 'order status, open list'),
    text('low_level_status', 'what exactly happens to it, open list'),
    INTERPRETATION,
    text('lab_account_id', 'lab account, UUID'),
    CREATED_AT,
    UPDATED_AT,
    text('origin', 'initial, redraw, recreation; open list'),
    text('sample_id', 'identifier of the sample'),
    text('notes', 'notes'),
    text('clinical_notes', 'comments for the requisition, those of the lab account included'),
    boolean('priority', 'to be handled first'),
    boolean('has_abn', 'there is an advance beneficiary notice'),
    boolean('has_missing_results', 'not every result has come'),
    date('activate_by', 'last day for the activation of a test kit'),
    date('expected_result_by_date', 'when the results usually are there'),
    date('worst_case_result_by_date', 'when the results are there at the latest'),
    text('billing_type', 'client_bill, commercial_insurance, patient_bill …; open list'),
    json('icd_codes', 'array of texts'),
    text('health_insurance_id', 'insurance that pays, UUID'),
    text('requisition_form_url', 'address of the requisition'),
    text('passthrough', 'text that the team gave with the order'),
    ...inside('last_event', [
      text('status', 'the last row of `order_events`'),
      text('status_detail', 'the same: why'),
      timestamp('created_at', 'the same: when'),
      integer('id', 'the same: identifier'),
    ]),
    text('lab_test_id', 'the lab test, UUID', { from: 'lab_test.id' }),
    ...inside('lab_test', [...LAB_TEST, json('markers', 'its markers, as they came')]).map((column) => ({
      ...column,
      description: `of the lab test: ${column.description}`,
    })),
    ...inside('order_transaction', [
      text('id', 'order transaction, UUID'),
      text('status', 'active, completed, cancelled; open list'),
      json('orders', 'the orders of the transaction, as they came'),
    ]),
    ...inside('details', [
      text('type', 'method that the details are of, open list'),
      json('data', 'shipment, appointment …, as they came'),
    ]),
    json('patient_details', 'the patient, as it came'),
    json('patient_address', 'address of the patient, as it came'),
    json('shipping_details', 'where a test kit goes, as it came'),
    json('physician', 'who signs, as it came'),
  ],
  nested: [
    rowsIn('events', {
      name: 'order_events',
      description: 'Which statuses the lab orders have passed, one a row.',
      key: ['order_id', 'event_index'],
      columns: [
        text('order_id', 'the order, UUID', { from: { parent: 'id' }, required: true }),
        inherited(USER),
        timestamp('order_updated_at', 'which version of the order the row belongs to', {
          from: { parent: 'updated_at' },
        }),
        position('event_index'),
        integer('id', 'identifier'),
        text('status', 'such as received.testkit.ordered; open list'),
        text('status_detail', 'why, where the status alone does not say it; open list'),
        timestamp('created_at', 'when it had the status'),
      ],
    }),
  ],
});
