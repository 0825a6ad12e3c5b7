import { boolean, type Column, decimal, integer, json, text } from '../definition.ts';
import { ID } from './common.ts';
import { rowsIn, table } from './table.ts';

/** Columns of a marker, in every document that describes one. */
export const MARKER: readonly Column[] = [
  integer('id', 'identifier', { required: true }),
  text('name', 'name'),
  text('slug', 'short name'),
  text('description', 'description'),
  integer('lab_id', 'the laboratory'),
  text('provider_id', 'identifier at the laboratory'),
  text('type', 'kind of marker, open list'),
  text('unit', 'unit of the results'),
  text('price', 'a text: what is not a number can occur'),
  json('aoe', 'questions that are asked with an order, as they came'),
  boolean('a_la_carte_enabled', 'can be ordered by itself'),
  boolean('is_orderable', 'can be ordered'),
  integer('common_tat_days', 'usual time to the result', { unit: 'days' }),
  integer('worst_case_tat_days', 'longest usual time to the result', { unit: 'days' }),
];

/** Columns of a lab test, except its id and its markers. */
export const LAB_TEST: readonly Column[] = [
  text('slug', 'short name'),
  text('name', 'name'),
  text('sample_type', 'dried_blood_spot, serum, saliva …; open list'),
  text('method', 'testkit, walk_in_test, at_home_phlebotomy …; open list'),
  decimal('price', 'price'),
  boolean('is_active', 'can be ordered'),
  text('status', 'active, pending_approval, inactive; open list'),
  boolean('fasting', 'the patient has to fast'),
  boolean('is_delegated', "ordered through the team's own account"),
  boolean('auto_generated', 'made for one order'),
  boolean('has_collection_instructions', 'there are instructions for the sample'),
  integer('common_tat_days', 'usual time to the results', { unit: 'days' }),
  integer('worst_case_tat_days', 'longest usual time to the results', { unit: 'days' }),
  json('lab', 'the laboratory, as it came'),
];

export const LAB_TESTS = table({
  name: 'lab_tests',
  description: 'Lab tests (order sets) that the team can order, one a row.',
  key: ['id'],
  columns: [ID, ...LAB_TEST],
  nested: [
    rowsIn('markers', {
      name: 'lab_test_markers',
      description: 'Which markers the lab tests measure, one a row.',
      key: ['lab_test_id', 'id'],
      columns: [
        text('lab_test_id', 'the lab test, UUID', { from: { parent: 'id' }, required: true }),
        ...MARKER,
      ],
    }),
  ],
});
