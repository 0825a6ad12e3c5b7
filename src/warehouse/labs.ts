import {
  boolean,
  type EventOrigin,
  integer,
  json,
  text,
  timestamp,
  type TableDefinition,
} from './definition.ts';

const MARKER_EXPECTED_RESULTS: TableDefinition = {
  name: 'marker_expected_results',
  description: 'What results the markers give, one a row, with their LOINC codes.',
  key: ['marker_id', 'id'],
  columns: [
    integer('marker_id', 'the marker', { from: { parent: 'id' }, required: true }),
    integer('result_index', 'position, from 0', { from: { of: 'position' } }),
    integer('id', 'identifier', { required: true }),
    text('name', 'name'),
    text('slug', 'short name'),
    integer('lab_id', 'the laboratory'),
    text('provider_id', 'identifier at the laboratory'),
    integer('loinc_id', 'identifier of the LOINC entry', { from: 'loinc.id' }),
    text('loinc_code', 'LOINC code', { from: 'loinc.code' }),
    text('loinc_name', 'LOINC name', { from: 'loinc.name' }),
    text('loinc_slug', 'LOINC short name', { from: 'loinc.slug' }),
    text('loinc_unit', 'unit of the result', { from: 'loinc.unit' }),
  ],
};

export const MARKERS: TableDefinition = {
  name: 'markers',
  description: 'Lab markers, one a row.',
  key: ['id'],
  columns: [
    integer('id', 'identifier', { required: true }),
    text('name', 'name'),
    text('slug', 'short name'),
    text('description', 'description'),
    integer('lab_id', 'the laboratory'),
    text('provider_id', 'identifier at the laboratory'),
    text('type', 'kind of marker, open list'),
    text('unit', 'unit of the results'),
    text('price', 'a text: what is not a number can occur'),
  ],
  nested: [{ at: 'expected_results', each: 'array', table: MARKER_EXPECTED_RESULTS }],
};

export const LAB_ACCOUNTS: TableDefinition = {
  name: 'lab_accounts',
  description: 'Lab accounts of the team, one a row.',
  key: ['id'],
  columns: [
    text('id', 'identifier, UUID', { required: true }),
    text('lab', 'lab identifier'),
    text('status', 'active, pending, suspended; open list'),
    text('delegated_flow', 'who handles the flow'),
    text('provider_account_id', 'identifier at the laboratory'),
    text('account_name', 'name'),
    text('org_id', 'organization, UUID'),
    text('default_clinical_notes', 'included on every order under the account'),
    json('allowed_billing', 'object as it came'),
    json('team_id_allowlist', 'array of team ids, UUIDs'),
    json('business_units', 'array of texts'),
  ],
};

export const ORDERS: TableDefinition = {
  name: 'orders',
  description: 'Lab orders, one a row. Few of their fields are documented; the others are in `extra`.',
  key: ['id'],
  newest: 'updated_at',
  events: { types: ['labtest.order.'], member: 'data' },
  columns: [
    text('id', 'identifier, UUID', { required: true }),
    text('team_id', 'team, UUID'),
    text('user_id', 'user, UUID'),
    text('status', 'order status, open list'),
    text('interpretation', 'normal, abnormal, critical; open list'),
    text('lab_account_id', 'lab account, UUID'),
    timestamp('created_at', 'creation'),
    timestamp('updated_at', 'the newest version wins'),
  ],
};

const PARSING_EVENTS: EventOrigin = { types: ['lab_report.parsing_job.'], member: 'data' };

const PARSING_JOB_RESULTS: TableDefinition = {
  name: 'parsing_job_results',
  description: 'Biomarkers that were read from uploaded lab reports, one a row.',
  key: ['job_id', 'result_index'],
  events: PARSING_EVENTS,
  columns: [
    text('job_id', 'the parsing job', { from: { parent: 'id' }, required: true }),
    integer('result_index', 'position, from 0', { from: { of: 'position' }, required: true }),
    text('name', 'biomarker as the report names it'),
    json('value', 'number or text, as it came'),
    text('unit', 'unit of the value'),
    json('reference_range', 'text or object, as it came'),
    text('interpretation', 'open list'),
    json('loinc', 'matched LOINC codes, as they came'),
  ],
};

export const PARSING_JOBS: TableDefinition = {
  name: 'parsing_jobs',
  description: 'Lab report parsing jobs, one a row.',
  key: ['id'],
  events: PARSING_EVENTS,
  columns: [
    text('id', 'identifier', { required: true }),
    text('status', 'upload_pending, started, completed, failed, pending_review; open list'),
    text('failure_reason', 'why it failed'),
    boolean('needs_human_review', 'a person is to look at it'),
    boolean('is_reviewed', 'a person has'),
    json('metadata', 'about the report, as it came', { from: 'data.metadata' }),
  ],
  nested: [{ at: 'data.results', each: 'array', table: PARSING_JOB_RESULTS }],
};
